// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

var errNotFound = errors.New("could not find out")

func TestMemoKeepsWhatIsSure(t *testing.T) {
	m := newMemo[int]()
	asked := 0
	find := func(value int, sure bool, err error) func() (int, bool, error) {
		return func() (int, bool, error) {
			asked++
			return value, sure, err
		}
	}
	for i, step := range []struct {
		find  func() (int, bool, error)
		value int
		known bool
		err   error
		asked int
	}{
		{find: find(0, true, errNotFound), err: errNotFound, asked: 1},
		{find: find(0, false, errNotFound), err: errNotFound, asked: 2},
		{find: find(1, false, nil), value: 1, asked: 3},
		{find: find(2, false, nil), value: 2, asked: 4},
		{find: find(3, true, nil), value: 3, asked: 5},
		{find: find(4, true, nil), value: 3, known: true, asked: 5},
		{find: find(0, true, errNotFound), value: 3, known: true, asked: 5},
	} {
		value, known, err := m.get(t.Context(), step.find)
		require.ErrorIs(t, err, step.err, "step %d", i)
		require.Equal(t, step.value, value, "step %d", i)
		require.Equal(t, step.known, known, "step %d", i)
		require.Equal(t, step.asked, asked, "step %d", i)
	}
}

// One finds out while the others wait for it.
func TestMemoAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = 10
		m := newMemo[int]()
		release := make(chan struct{})
		var asked, knew atomic.Int32
		var group sync.WaitGroup
		for range waiting {
			group.Go(func() {
				value, known, err := m.get(t.Context(), func() (int, bool, error) {
					asked.Add(1)
					<-release
					return 7, true, nil
				})
				if known {
					knew.Add(1)
				}
				if err != nil || value != 7 {
					t.Errorf("got %d, %v", value, err)
				}
			})
		}
		synctest.Wait()
		require.EqualValues(t, 1, asked.Load())
		require.Zero(t, knew.Load(), "nobody knows before it was found")
		close(release)
		group.Wait()
		require.EqualValues(t, 1, asked.Load())
		require.EqualValues(t, waiting-1, knew.Load())
	})
}

// If the one who tries fails, the next one tries. Its failure is nobody else's.
func TestMemoPassesTheTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemo[int]()
		release := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			_, known, err := m.get(t.Context(), func() (int, bool, error) {
				<-release
				return 0, false, errNotFound
			})
			if known || !errors.Is(err, errNotFound) {
				t.Errorf("known %t, %v", known, err)
			}
		})
		synctest.Wait()
		group.Go(func() {
			value, known, err := m.get(t.Context(), func() (int, bool, error) { return 7, true, nil })
			if value != 7 || known || err != nil {
				t.Errorf("got %d, known %t, %v", value, known, err)
			}
		})
		synctest.Wait()
		close(release)
		group.Wait()
		value, known, err := m.get(t.Context(), nil)
		require.NoError(t, err)
		require.True(t, known)
		require.Equal(t, 7, value)
	})
}

// Nobody waits longer than its context permits.
func TestMemoWaitsAsLongAsTheContextPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemo[int]()
		release := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			_, _, err := m.get(t.Context(), func() (int, bool, error) {
				<-release
				return 7, true, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		group.Go(func() {
			_, known, err := m.get(ctx, func() (int, bool, error) { panic("it is not its turn") })
			if known || !errors.Is(err, ctx.Err()) || !errors.Is(err, errNotFound) {
				t.Errorf("known %t, %v", known, err)
			}
			if got := err.Error(); got != "filter operation aborted: context canceled: could not find out" {
				t.Error(got)
			}
		})
		synctest.Wait()
		cancel(errNotFound)
		synctest.Wait()
		close(release)
		group.Wait()
		_, known, err := m.get(ctx, nil)
		require.NoError(t, err, "what is known is had without waiting")
		require.True(t, known)
	})
}

// A panic leaves nobody waiting.
func TestMemoSurvivesAPanic(t *testing.T) {
	m := newMemo[int]()
	require.Panics(t, func() { _, _, _ = m.get(t.Context(), func() (int, bool, error) { panic("broken") }) })
	value, known, err := m.get(t.Context(), func() (int, bool, error) { return 7, true, nil })
	require.NoError(t, err)
	require.False(t, known)
	require.Equal(t, 7, value)
}
