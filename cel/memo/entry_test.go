// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memo

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

// flat is the size function for keys and values without pointers.
func flat[K comparable, V any](K, *V) Size { return Size{} }

func newEntry() *Entry[string, int] {
	return In(New(1<<20), flat[string, int]).At("key")
}

func TestFindKeepsWhatWasFound(t *testing.T) {
	e := newEntry()
	require.Nil(t, e.Look())
	asked := 0
	find := func(value int, err error) func() (int, error) {
		return func() (int, error) {
			asked++
			return value, err
		}
	}
	for i, step := range []struct {
		find  func() (int, error)
		value int
		known bool
		err   error
		asked int
	}{
		{find: find(0, errNotFound), err: errNotFound, asked: 1},
		{find: find(1, errNotFound), value: 1, err: errNotFound, asked: 2},
		{find: find(3, nil), value: 3, asked: 3},
		{find: find(4, nil), value: 3, known: true, asked: 3},
		{find: find(0, errNotFound), value: 3, known: true, asked: 3},
	} {
		value, known, err := e.Find(t.Context(), step.find)
		require.ErrorIs(t, err, step.err, "step %d", i)
		require.Equal(t, step.value, value, "step %d", i)
		require.Equal(t, step.known, known, "step %d", i)
		require.Equal(t, step.asked, asked, "step %d", i)
	}
	require.Equal(t, 3, *e.Look())
}

// TestFindAsksOnce tests that one caller computes the value while the other callers wait.
func TestFindAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = 10
		squares := In(New(1<<20), flat[string, int])
		release := make(chan struct{})
		var asked, knew atomic.Int32
		var group sync.WaitGroup
		for range waiting {
			group.Go(func() {
				value, known, err := squares.At("key").Find(t.Context(), func() (int, error) {
					asked.Add(1)
					<-release
					return 7, nil
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

// TestWaitingCallersGetLargeValues tests that waiting callers get a value even if it is too large to be stored.
func TestWaitingCallersGetLargeValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := New(1 << 20)
		large := In(memory, func(string, *int) Size { return Size{Bytes: 1 << 20} })
		release := make(chan struct{})
		var asked atomic.Int32
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				value := large.Get("key", func() int {
					asked.Add(1)
					<-release
					return 7
				})
				if value != 7 {
					t.Errorf("got %d", value)
				}
			})
		}
		synctest.Wait()
		close(release)
		group.Wait()
		require.EqualValues(t, 1, asked.Load())
		require.Zero(t, large.Len())
		require.Zero(t, memory.Used())
	})
}

// TestNextCallerComputesAfterAFailure tests that the next caller computes if the first one fails, and that other callers do not get its
// error.
func TestNextCallerComputesAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntry()
		release := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			_, known, err := e.Find(t.Context(), func() (int, error) {
				<-release
				return 0, errNotFound
			})
			if known || !errors.Is(err, errNotFound) {
				t.Errorf("known %t, %v", known, err)
			}
		})
		synctest.Wait()
		group.Go(func() {
			value, known, err := e.Find(t.Context(), func() (int, error) { return 7, nil })
			if value != 7 || known || err != nil {
				t.Errorf("got %d, known %t, %v", value, known, err)
			}
		})
		synctest.Wait()
		close(release)
		group.Wait()
		value, known, err := e.Find(t.Context(), nil)
		require.NoError(t, err)
		require.True(t, known)
		require.Equal(t, 7, value)
	})
}

// TestFindEndsWithTheContext tests that a caller stops waiting when its context ends.
func TestFindEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntry()
		release := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			if _, _, err := e.Find(t.Context(), func() (int, error) {
				<-release
				return 7, nil
			}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		group.Go(func() {
			_, known, err := e.Find(ctx, func() (int, error) { panic("it is not its turn") })
			if known || !errors.Is(err, ErrInterrupted) {
				t.Errorf("known %t, %v", known, err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(release)
		group.Wait()
		_, known, err := e.Find(ctx, nil)
		require.NoError(t, err, "what is known is had without waiting")
		require.True(t, known)
	})
}

// TestFindSurvivesAPanic tests that a panic stores nothing and leaves no caller waiting.
func TestFindSurvivesAPanic(t *testing.T) {
	e := newEntry()
	require.Panics(t, func() { _, _, _ = e.Find(t.Context(), func() (int, error) { panic("broken") }) })
	require.Nil(t, e.Look())
	value, known, err := e.Find(t.Context(), func() (int, error) { return 7, nil })
	require.NoError(t, err)
	require.False(t, known)
	require.Equal(t, 7, value)
}
