// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCollectedOncePerChange(t *testing.T) {
	n, failure := 0, error(nil)
	c := collected[int]{}
	c.collect = func(context.Context) (int, error) {
		n++
		return n, failure
	}
	requireValue := func(want int) {
		t.Helper()
		value, err := c.get(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, value)
	}
	requireValue(1)
	requireValue(1)
	c.changed()
	c.changed()
	requireValue(2)

	failure = errors.New("no cache")
	requireValue(2)
	c.changed()
	_, err := c.get(t.Context())
	require.ErrorIs(t, err, failure)
	failure = nil
	requireValue(4)
	requireValue(4)
}

// A change while something is collected may be in it or not, so it is collected anew.
func TestCollectedDuringChange(t *testing.T) {
	n := 0
	c := collected[int]{}
	c.collect = func(context.Context) (int, error) {
		if n++; n == 1 {
			c.changed()
		}
		return n, nil
	}
	for _, want := range []int{1, 2, 2} {
		value, err := c.get(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, value)
	}
}

func TestCollectedConcurrently(t *testing.T) {
	state := 0
	var lock sync.Mutex
	c := collected[int]{}
	c.collect = func(context.Context) (int, error) {
		lock.Lock()
		defer lock.Unlock()
		return state, nil
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 200 {
				lock.Lock()
				state++
				changed := state
				lock.Unlock()
				c.changed()
				if value, err := c.get(t.Context()); err != nil || value < changed {
					t.Errorf("%d after change %d: %v", value, changed, err)
				}
			}
		})
	}
	wait.Wait()
}
