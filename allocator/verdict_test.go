// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cel"
)

// allocateWith is the answer with a cache, and what it took.
func (s scenario) allocateWith(t testing.TB, cache *Cache, opts ...Option) ([]resourceapi.AllocationResult, Stats, error) {
	t.Helper()
	a := s.with(append([]Option{WithCache(cache)}, opts...)...).allocator(t)
	results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
	return results, a.Stats(), err
}

// Whether a search stays within its budget, and what is said if it does not, does not
// depend on which verdicts are known: known ones are charged, too.
func TestBudgetDoesNotDependOnVerdicts(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(7)...)}, inUse: []string{"mla-6"},
		claims: []*claimBuilder{claim("c").want("x", 2).cel("late").define("late", indices+".slice(0, 2) == [3, 5]")},
	}
	warm := NewCache()
	results, all, err := s.allocateWith(t, warm)
	require.NoError(t, err)
	require.Equal(t, []string{"x=mla-3", "x=mla-5"}, devicesOf(results))
	require.EqualValues(t, 14, all.Evaluations, "all sets up to the last but one")
	require.Zero(t, all.CacheHits)

	search := s.search(t)
	_, err = search.run()
	require.NoError(t, err)
	total := search.work.cost.Spent()
	failed := 0
	for limit := range total + 3 {
		cold, atFirst, coldErr := s.allocateWith(t, NewCache(), WithCostBudget(limit))
		known, later, warmErr := s.allocateWith(t, warm, WithCostBudget(limit))
		require.Equal(t, devicesOf(cold), devicesOf(known))
		require.Equal(t, atFirst.Steps, later.Steps)
		require.Zero(t, later.Evaluations)
		require.Equal(t, atFirst.Evaluations, later.CacheHits)
		require.Equal(t, limit >= total, coldErr == nil, "%d of %d", limit, total)
		if coldErr == nil {
			require.NoError(t, warmErr)
			require.Equal(t, all.Evaluations, later.CacheHits)
			continue
		}
		failed++
		require.EqualError(t, warmErr, coldErr.Error())
		for _, err := range []error{coldErr, warmErr} {
			var failure *BudgetError
			require.ErrorAs(t, err, &failure)
			var evaluation *cel.Error
			require.ErrorAs(t, err, &evaluation)
			require.Equal(t, cel.ReasonBudget, evaluation.Reason)
		}
	}
	require.EqualValues(t, total, failed)
}

// Verdicts are shared where the devices look the same, whichever request and claim wants
// them; not with other expressions, other devices and in another order.
func TestVerdictsAreShared(t *testing.T) {
	const text = "devices.slice(0, 1).size() + devices.size() == 4"
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(12)...)},
		claims: []*claimBuilder{claim("c").want("x", 3).cel("three").define("three", text)},
	}
	other := func(c *claimBuilder, slices ...*sliceBuilder) scenario {
		if len(slices) == 0 {
			slices = s.slices
		}
		return scenario{slices: slices, claims: []*claimBuilder{c}}
	}
	for name, test := range map[string]struct {
		scenario
		known bool
	}{
		"other request":    {other(claim("d").want("a", 2).want("b", 1).cel("other").define("other", text)), true},
		"other node":       {other(claim("d").want("x", 3).cel("three").define("three", text).configure(opaque("{}")), slice("2", ring(12)...).pool("pool-2", 1, 1)), true},
		"not plain":        {other(claim("d").want("x", 3).cel("three").define("three", text), slice("1", append(ring(11), newDevice("mla-11", attrs{"index": 11}, func(d *resourceapi.Device) { d.BindingConditions = []string{"x"} }))...)), true},
		"other expression": {other(claim("c").want("x", 3).cel("three").define("three", text+" ")), false},
		"other devices":    {other(claim("c").want("x", 3, index+" > 0").cel("three").define("three", text)), false},
		"other order":      {other(claim("c").want("a", 1, index+" == 1").want("b", 2).cel("three").define("three", text)), false},
		"smaller set":      {other(claim("c").want("x", 2).cel("three").define("three", text)), false},
		"other hardware":   {other(claim("c").want("x", 3).cel("three").define("three", text), slice("1", ring(13)...)), false},
	} {
		t.Run(name, func(t *testing.T) {
			cache := NewCache()
			_, first, err := s.allocateWith(t, cache)
			require.NoError(t, err)
			require.EqualValues(t, 1, first.Evaluations)
			want, alone, err := test.allocateWith(t, NewCache())
			require.NoError(t, err)
			got, stats, err := test.allocateWith(t, cache)
			require.NoError(t, err)
			require.Equal(t, devicesOf(want), devicesOf(got))
			require.Equal(t, alone.Evaluations, stats.Evaluations+stats.CacheHits)
			require.Equal(t, alone.SetsAccepted, stats.SetsAccepted)
			require.Equal(t, test.known, stats.CacheHits == 1)
		})
	}
}

// The exhaustive search is asked to find out by itself.
func TestExhaustiveSearchKnowsNothing(t *testing.T) {
	s := rowOfThree()
	cache := NewCache()
	for range 2 {
		_, stats, err := s.allocateWith(t, cache)
		require.NoError(t, err)
		require.LessOrEqual(t, stats.Evaluations, int64(1))
		_, stats, err = s.allocateWith(t, cache, WithExhaustiveSearch())
		require.NoError(t, err)
		require.EqualValues(t, 1, stats.Evaluations)
		require.Zero(t, stats.CacheHits)
		require.Zero(t, stats.TableEvaluations)
	}
}

// A search that the context or the budget ends at any place leaves nothing behind that
// would make others wrong.
func TestInterruptedSearchesLeaveNothingWrong(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", mesh(3, 3)...)}, inUse: []string{"mla-00", "mla-12"},
		claims: []*claimBuilder{claim("c").want("x", 4).cel("grid").cel("late").define("grid", neighbors).define("late", "devices.slice(0, 1).size() == 1")},
	}
	want, err := s.allocate(t)
	require.NoError(t, err)
	require.NotEmpty(t, devicesOf(want))

	cache := NewCache()
	interrupted := 0
	for limit := uint64(0); ; limit += 7 {
		_, _, err := s.allocateWith(t, cache, WithCostBudget(limit))
		if err == nil {
			break
		}
		interrupted++
		var failure *BudgetError
		require.ErrorAs(t, err, &failure)
	}
	require.Positive(t, interrupted)
	got, _, err := s.allocateWith(t, cache)
	require.NoError(t, err)
	require.Equal(t, devicesOf(want), devicesOf(got))

	for after := 0; ; after++ {
		cache := NewCache()
		a := s.with(WithCache(cache)).allocator(t)
		ctx := &endingContext{Context: t.Context()}
		ctx.left.Store(int64(after))
		_, err := a.Allocate(ctx, s.onNode(), s.apiClaims())
		got, _, later := s.allocateWith(t, cache)
		require.NoError(t, later)
		require.Equal(t, devicesOf(want), devicesOf(got), "ended when it was asked the %dth time", after)
		if err == nil {
			require.Greater(t, after, 10)
			break
		}
		require.ErrorIs(t, err, context.Canceled)
	}
}

// endingContext ends when it was asked that often.
type endingContext struct {
	context.Context
	left atomic.Int64
}

func (e *endingContext) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Value hides the context within, whose cause of an end would be looked for.
func (e *endingContext) Value(any) any { return nil }
