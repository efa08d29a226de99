// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// tabulating are expressions that use all kinds of tables: columns of ints, strings and bools, pairs, predicates on one and two
// devices, boxes, and constants.
var tabulating = []string{
	width("x") + " <= 2 && " + width("y") + " <= 1",
	"devices.all(d, devices.filter(o, d != o && d.x <= o.y).size() >= 1)",
	"devices.all(d, devices.exists(o, d.s < o.s || d.s + o.s == 'aa'))",
	"devices.exists_one(d, !devices.exists(o, o.x == d.x + 1)) && devices.map(d, d.x).sum() > int('3')",
	"devices.map(d, d.s).distinct().size() == 1 || devices.exists(d, d.s.startsWith('a') && d.y > 0)",
}

// things returns n devices with the attributes x, y and s.
func things(n int) []*device.Device {
	all := make([]values, n)
	for i := range all {
		all[i] = values{"x": i * 7 % 5, "y": i % 3, "s": string(rune('a' + i*5%4))}
	}
	return devicesWith(all...)
}

// A finding holds the results of Bound and Infeasible for a partial set.
type finding struct {
	may        bound.Outcome
	infeasible bool
	possible   []int
	required   []int
}

func find(b *bound.Bounds, s *sound, p bound.Partial) finding {
	result := finding{may: b.Bound(clone(p))}
	propagated := clone(p)
	propagated.Forced = bitset.New(len(s.all))
	result.infeasible = b.Infeasible(propagated, bound.Thorough)
	result.possible, result.required = positions(propagated.Domain), positions(propagated.Forced)
	return result
}

// partials returns random partial sets.
func partials(t *testing.T, s *sound, count int) []bound.Partial {
	t.Helper()
	var result []bound.Partial
	draw := rapid.Custom(func(rt *rapid.T) bound.Partial { return drawPartial(rt, s) })
	for i := range count {
		result = append(result, draw.Example(i))
	}
	return result
}

// TestTablesAreUsedByMany checks concurrent searches: each entry is computed once, each table is started once, and all searches
// get the same results.
func TestTablesAreUsedByMany(t *testing.T) {
	const searches, sets = 8, 30
	e := environment(t)
	for _, text := range tabulating {
		t.Run(text, func(t *testing.T) {
			f := compiled(t, e, text)
			alone := soundOf(f, 3, things(20))
			all := partials(t, alone, sets)
			want := make([]finding, sets)
			bounds := alone.bounds(t)
			for i, p := range all {
				want[i] = find(bounds, alone, p)
			}
			require.Positive(t, bounds.Evaluations())
			require.Positive(t, bounds.Builds())
			again := alone.bounds(t)
			require.Equal(t, want[0], find(again, alone, all[0]))
			require.Zero(t, again.Evaluations(), "all is known")
			require.Zero(t, again.Builds())

			shared := soundOf(f, 3, things(20))
			var group sync.WaitGroup
			each := make([]*bound.Bounds, searches)
			got := make([][]finding, searches)
			for i := range searches {
				each[i], got[i] = shared.bounds(t), make([]finding, sets)
				group.Go(func() {
					for j := range sets {
						at := (j*7 + i*11) % sets // each search has its own order
						got[i][at] = find(each[i], shared, all[at])
					}
				})
			}
			group.Wait()
			var evaluations, builds int64
			for i := range searches {
				require.Equal(t, want, got[i])
				evaluations, builds = evaluations+each[i].Evaluations(), builds+each[i].Builds()
			}
			require.Equal(t, bounds.Evaluations(), evaluations)
			require.Equal(t, bounds.Builds(), builds)
		})
	}
}

// ending is a context that is canceled after a given number of calls of Err.
type ending struct {
	context.Context
	left atomic.Int64
}

var errEnough = errors.New("enough")

func (e *ending) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Value hides the values of the inner context. Otherwise context.Cause would ask the inner context, which is not canceled.
func (e *ending) Value(any) any { return nil }

// requireNothingKept interrupts a search after each number of evaluations. The search must return the reason and no results.
// Then another search with the same tables must get the same results as a search without an interruption.
func requireNothingKept(t *testing.T, interrupted func(*sound, int) *bound.Bounds, reason cel.Reason) {
	t.Helper()
	e := environment(t)
	for _, text := range tabulating {
		f := compiled(t, e, text)
		fresh := soundOf(f, 3, things(8))
		interruptions := 0
		for _, p := range partials(t, fresh, 4) {
			want := find(fresh.bounds(t), fresh, p)
			for after := 0; ; after++ {
				s := soundOf(f, 3, things(8))
				b := interrupted(s, after)
				if requireInterrupted(t, s, b, p, reason) {
					require.Equal(t, want.infeasible, b.Infeasible(clone(p), bound.Thorough))
					break
				}
				interruptions++
				require.Equal(t, want, find(s.bounds(t), s, p), "%s: after %d", text, after)
			}
		}
		require.Positive(t, interruptions, text)
	}
}

// requireInterrupted checks a search that may be interrupted. It returns true if the search finished without an interruption.
func requireInterrupted(t *testing.T, s *sound, b *bound.Bounds, p bound.Partial, reason cel.Reason) (complete bool) {
	t.Helper()
	propagated := clone(p)
	propagated.Forced = of(len(s.all), 1)
	infeasible := b.Infeasible(propagated, bound.Thorough)
	if b.Err() == nil {
		return true
	}
	var failure *cel.Error
	require.ErrorAs(t, b.Err(), &failure)
	require.Equal(t, reason, failure.Reason)
	require.False(t, infeasible, "nothing can be told")
	require.Equal(t, p.Domain, propagated.Domain)
	require.Equal(t, p.Chosen, propagated.Chosen)
	require.True(t, propagated.Forced.IsEmpty())
	require.Equal(t, bound.Open, b.Bound(clone(p)))
	before := b.Evaluations()
	require.False(t, b.Infeasible(clone(p), bound.Quick))
	require.Equal(t, before, b.Evaluations(), "it is not asked again")
	return false
}

func TestNothingWrongIsKeptWhenTheContextEnds(t *testing.T) {
	requireNothingKept(t, func(s *sound, after int) *bound.Bounds {
		ctx := &ending{Context: t.Context()}
		ctx.left.Store(int64(after))
		return s.tables.NewBounds(ctx, nil)
	}, cel.ReasonInterrupted)
}

func TestNothingWrongIsKeptWhenTheBudgetIsUsedUp(t *testing.T) {
	requireNothingKept(t, func(s *sound, after int) *bound.Bounds {
		return s.tables.NewBounds(t.Context(), cel.NewBudget(uint64(after)))
	}, cel.ReasonBudget)
}

func TestErrTellsWhy(t *testing.T) {
	s := newSound(t, environment(t), tabulating[0], 2, things(4))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	b := s.tables.NewBounds(ctx, nil)
	require.NoError(t, b.Err())
	require.Equal(t, bound.Open, b.Bound(s.partial(nil, upTo(4))))
	require.ErrorIs(t, b.Err(), errEnough)
	require.False(t, b.Exhausted())
}

// TestPartsThatAbort has parts that abort the evaluation of the whole expression. No operator absorbs such an error: "false &&
// part" is an error.
func TestPartsThatAbort(t *testing.T) {
	e, err := device.NewEnvironment(cel.Config{CostLimit: 60})
	require.NoError(t, err)
	long := "[1, 2, 3, 4, 5, 6, 7, 8, 9].all(i, [1, 2, 3, 4, 5, 6, 7, 8, 9].all(j, i + j > 0))"
	for _, text := range []string{
		"devices.all(d, d.x == 9 && d.y == 9) && devices.all(d, d.x < 2 || " + long + ")",
		"devices.exists(d, d.x == 9) && devices.all(d, devices.all(o, o == d || d.x + o.x < 5 || o.y > d.y + 1 || " + long + "))",
	} {
		s := newSound(t, e, text, 2, things(5))
		s.checkAll(t)
		require.Equal(t, bound.Open, s.bounds(t).Bound(s.partial(nil, upTo(5))), text)
	}
}

// TestEqualDevicesShareRows checks that devices with equal values share rows: the number of rows is the number of racks.
func TestEqualDevicesShareRows(t *testing.T) {
	const racks = 20
	inRacks := func(n int) []*device.Device {
		all := make([]values, n)
		for i := range all {
			all[i] = values{"x": i % racks, "y": i, "s": "a"}
		}
		return devicesWith(all...)
	}
	for text, shared := range map[string]bool{
		"devices.all(d, devices.all(o, d.x == o.x))":               true,
		"devices.all(d, devices.filter(o, d.x < o.x).size() <= 1)": true,
		"devices.all(d, devices.all(o, d == o || d.x < o.y))":      false,
		"devices.all(d, devices.all(o, d.x == o.x || d.y < o.y))":  false,
	} {
		grown := func(n int) (bytes int) {
			tables := bound.Analyze(compiled(t, environment(t), text).Expression, 4).Tabulate(inRacks(n))
			tables.Grown = func(b int) { bytes += b }
			all := bitset.New(n)
			for i := range n {
				all.Add(i)
			}
			b := tables.NewBounds(t.Context(), cel.NewBudget(1<<40))
			b.Infeasible(bound.Partial{Chosen: bitset.New(n), Domain: all, Left: 4}, bound.Thorough)
			require.NoError(t, b.Err())
			return bytes
		}
		// A row has one bit for each device. With twice the devices, shared rows take twice the memory. A row per device would
		// take four times the memory.
		factor := float64(grown(1200)) / float64(grown(600))
		if shared {
			require.InDelta(t, 2, factor, 0.3, text)
		} else {
			require.Greater(t, factor, 2.5, text)
		}
	}
}

// TestTooManyPairsExhaustBounds checks that bounds give up before CEL evaluates millions of pairs.
func TestTooManyPairsExhaustBounds(t *testing.T) {
	const text = "devices.all(d, devices.exists(o, d.s + o.s == 'aa'))"
	for n, exhausted := range map[int]bool{100: false, 1000: true} {
		all := bitset.New(n)
		for i := 1; i < n; i++ {
			all.Add(i)
		}
		tables := bound.Analyze(compiled(t, environment(t), text).Expression, 4).Tabulate(things(n))
		b := tables.NewBounds(t.Context(), cel.NewBudget(1<<40))
		p := bound.Partial{Chosen: bitset.New(n), Domain: all, Left: 3}
		p.Chosen.Add(0)
		b.Infeasible(p, bound.Thorough)
		require.Equal(t, exhausted, b.Exhausted(), n)
	}
}
