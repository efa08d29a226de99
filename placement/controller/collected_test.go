// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
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

func TestUnchangedClustersAreTheSameObjects(t *testing.T) {
	list := func(versions ...string) []*clusterv1.ManagedCluster {
		var result []*clusterv1.ManagedCluster
		for i, version := range versions {
			if version != "" {
				result = append(result, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
					Name: string(rune('a' + i)), UID: types.UID(version[:1]), ResourceVersion: version[1:],
				}})
			}
		}
		return result
	}
	for name, test := range map[string]struct {
		former, now []*clusterv1.ManagedCluster
		// same are the places of the objects among the former ones, -1 for new ones.
		same []int
	}{
		"the first":      {nil, list("u1", "u1"), []int{-1, -1}},
		"none":           {list("u1"), nil, nil},
		"one changes":    {list("u1", "u1", "u1"), list("u1", "u2", "u1"), []int{0, -1, 2}},
		"one goes":       {list("u1", "u1", "u1"), list("", "u1", "u1"), []int{1, 2}},
		"one comes":      {list("u1", "", "u1"), list("u1", "u1", "u1"), []int{0, -1, 1}},
		"one is another": {list("u1", "u1"), list("u1", "v1"), []int{0, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := unchanged(test.former, test.now)
			require.Equal(t, len(test.now), len(got))
			for i, c := range got {
				require.Equal(t, test.now[i], c)
				require.Equal(t, test.same[i], slices.Index(test.former, c))
			}
		})
	}
}
