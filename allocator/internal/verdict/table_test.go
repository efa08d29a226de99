// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/memo"
	"github.com/celset/celset/internal/testing/cases"
)

var errFailed = errors.New("evaluation failed")

// evaluator is an [Evaluator].
type evaluator func() (Verdict, error)

func (e evaluator) EvaluateSet() (Verdict, error) { return e() }

func newTable(devices int) *Table { return NewTable(devices, 1<<20, func(int) {}) }

// is returns an evaluator whose verdict is different for each set.
func is(positions []int) evaluator {
	v := Verdict{Cost: uint64(len(positions))}
	for _, position := range positions {
		v.Cost = v.Cost*1031 + uint64(position)
		v.Satisfied = v.Satisfied != (position%2 == 0)
	}
	return func() (Verdict, error) { return v, nil }
}

var never evaluator = func() (Verdict, error) { return Verdict{}, errors.New("is known already") }

// The table returns the verdict of the right set, for any number of sets. Until the table is full, each set is evaluated once.
func TestTableIsAMap(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		devices := rapid.SampledFrom([]int{1, 2, 3, 16, 64, 65, 300}).Draw(t, "devices")
		sets := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, devices-1), 1, 12), 1, 200).Draw(t, "sets")
		isSmall := rapid.Bool().Draw(t, "small")
		table := newTable(devices)
		if isSmall {
			table = NewTable(devices, 1<<10, func(int) {})
		}
		asked := map[string]bool{}
		for _, set := range sets {
			want, _ := is(set)()
			fails := rapid.IntRange(0, 9).Draw(t, "fails") == 0
			evaluations := 0
			got, known, err := table.Find(t.Context(), set, evaluator(func() (Verdict, error) {
				if evaluations++; fails {
					return Verdict{}, errFailed
				}
				return want, nil
			}))
			before := asked[fmt.Sprint(set)]
			require.False(t, known && !before)
			require.Equal(t, !known, evaluations == 1)
			if !isSmall {
				require.Equal(t, before, known)
			}
			if !known && fails {
				require.ErrorIs(t, err, errFailed)
				delete(asked, fmt.Sprint(set))
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, got)
			asked[fmt.Sprint(set)] = true
		}
	})
}

func TestOrderAndSizeCount(t *testing.T) {
	table := newTable(64)
	sets := [][]int{{0}, {0, 0}, {0, 1}, {1, 0}, {1}, {0, 0, 1}, make([]int, 20), make([]int, 21)}
	for _, set := range sets {
		_, known, err := table.Find(t.Context(), set, is(set))
		require.NoError(t, err)
		require.False(t, known, "%v", set)
	}
	for _, set := range sets {
		want, _ := is(set)()
		got, known, err := table.Find(t.Context(), set, never)
		require.NoError(t, err)
		require.True(t, known)
		require.Equal(t, want, got)
	}
}

// If several callers need the same verdict, one caller evaluates the set while the others wait.
func TestSetsAreEvaluatedOnce(t *testing.T) {
	for _, size := range []int{4, 30} {
		synctest.Test(t, func(t *testing.T) {
			table, release := newTable(64), make(chan struct{})
			var evaluated, knew atomic.Int32
			var group sync.WaitGroup
			for range 10 {
				group.Go(func() {
					_, known, err := table.Find(t.Context(), make([]int, size), evaluator(func() (Verdict, error) {
						evaluated.Add(1)
						<-release
						return Verdict{Cost: 7}, nil
					}))
					if known {
						knew.Add(1)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			close(release)
			group.Wait()
			require.EqualValues(t, 1, evaluated.Load())
			require.EqualValues(t, 9, knew.Load())
		})
	}
}

// If the evaluation fails or panics, the next waiting caller evaluates the set. No caller waits after its context has ended.
func TestTurnIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, set, release := newTable(16), []int{1, 2}, make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			defer func() { _ = recover() }()
			_, _, _ = table.Find(t.Context(), set, evaluator(func() (Verdict, error) {
				<-release
				panic("broken")
			}))
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		group.Go(func() {
			_, known, err := table.Find(ctx, set, never)
			if known || !errors.Is(err, memo.ErrInterrupted) {
				t.Errorf("known %t, %v", known, err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		group.Go(func() {
			_, known, err := table.Find(t.Context(), set, evaluator(func() (Verdict, error) { return Verdict{}, errFailed }))
			if known || !errors.Is(err, errFailed) {
				t.Errorf("known %t, %v", known, err)
			}
		})
		synctest.Wait()
		close(release)
		group.Wait()
		v, known, err := table.Find(ctx, set, evaluator(func() (Verdict, error) { return Verdict{true, 3}, nil }))
		require.NoError(t, err)
		require.False(t, known)
		require.Equal(t, Verdict{true, 3}, v)
	})
}

// The table may be cleared while a set is being evaluated.
func TestEvaluationOutlivesTheEntries(t *testing.T) {
	table, set := NewTable(1<<20, 1<<10, func(int) {}), []int{1}
	_, _, err := table.Find(t.Context(), set, evaluator(func() (Verdict, error) {
		for i := range 1000 {
			if _, _, err := table.Find(t.Context(), []int{2, i}, is([]int{i})); err != nil {
				return Verdict{}, err
			}
		}
		return Verdict{Cost: 5}, nil
	}))
	require.NoError(t, err)
	v, known, err := table.Find(t.Context(), set, never)
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, Verdict{Cost: 5}, v)
}

// The size that a table reports is close to the memory that it uses, and stays within the limit.
func TestReportedTableSize(t *testing.T) {
	for name, size := range map[string]int{"small sets": 2, "large sets": 20} {
		t.Run(name, func(t *testing.T) {
			said := 0
			before := heap()
			table := NewTable(1024, 1<<20, func(bytes int) { said += bytes })
			set := make([]int, size)
			for i := range 3_000 {
				set[0], set[1] = i/1024, i%1024
				_, _, err := table.Find(t.Context(), set, is(set[:2]))
				require.NoError(t, err)
			}
			taken := heap() - before
			runtime.KeepAlive(table)
			t.Logf("%d bytes are said, %d are taken", said, taken)
			require.LessOrEqual(t, said, 1<<20)
			require.Less(t, taken, 2*said)
			require.Less(t, said, 2*taken)
		})
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int(memory.HeapAlloc)
}
