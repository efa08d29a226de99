// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/cel"
)

// allocateWith allocates the scenario's claims with a cache. It also returns the work of the call.
func (s scenario) allocateWith(t testing.TB, cache *Cache, opts ...option) ([]resourceapi.AllocationResult, Stats, error) {
	t.Helper()
	a := s.with(append([]option{WithCache(cache)}, opts...)...).allocator(t)
	results, err := a.Allocate(t.Context(), s.OnNode(), s.APIClaims())
	return results, a.Stats(), err
}

// A search is charged the same cost for a cached verdict as for an evaluation. So the cache changes neither whether a search
// stays within its budget, nor its error if it does not.
func TestBudgetDoesNotDependOnVerdicts(t *testing.T) {
	s := given(t, "devices 7 mla-# index=#; allocated mla-6; claim c; want x 2; cel late = $indices.slice(0, 2) == [3, 5]")
	warm := NewCache()
	results, all, err := s.allocateWith(t, warm)
	require.NoError(t, err)
	require.Equal(t, []string{"x=mla-3", "x=mla-5"}, devicesOf(results))
	require.EqualValues(t, 14, all.Evaluations, "all sets up to the last but one")
	require.Zero(t, all.CacheHits)

	search := s.search(t)
	_, err = search.Run()
	require.NoError(t, err)
	total := search.Work.Cost.Spent()
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

// Requests and claims share the verdicts of an expression for sets of devices that look the same. Other expressions, devices
// and orders of devices have their own verdicts.
func TestVerdictsAreShared(t *testing.T) {
	const text = "cel three = devices.slice(0, 1).size() + devices.size() == 4; "
	const devices = "slice 1; devices 12 mla-# index=#; "
	s := given(t, devices+"claim c; want x 3; "+text)
	for name, test := range map[string]struct {
		statements string
		known      bool
	}{
		"other request":    {devices + "claim d; want a 2; want b 1; " + strings.Replace(text, "three", "other", 1), true},
		"other node":       {"slice 2 pool=pool-2; devices 12 mla-# index=#; claim d; want x 3; config = {}; " + text, true},
		"not plain":        {"devices 11 mla-# index=#; device mla-11 index=11 +binding=x; claim d; want x 3; " + text, true},
		"other expression": {devices + "claim c; want x 3; " + strings.Replace(text, "== 4", "==  4", 1), false},
		"other devices":    {devices + "claim c; want x 3 if $device.index > 0; " + text, false},
		"other order":      {devices + "claim c; want a 1 if $device.index == 1; want b 2; " + text, false},
		"smaller set":      {devices + "claim c; want x 2; " + text, false},
		"other hardware":   {"devices 13 mla-# index=#; claim c; want x 3; " + text, false},
	} {
		t.Run(name, func(t *testing.T) {
			cache, other := NewCache(), given(t, test.statements)
			_, first, err := s.allocateWith(t, cache)
			require.NoError(t, err)
			require.EqualValues(t, 1, first.Evaluations)
			want, alone, err := other.allocateWith(t, NewCache())
			require.NoError(t, err)
			got, stats, err := other.allocateWith(t, cache)
			require.NoError(t, err)
			require.Equal(t, devicesOf(want), devicesOf(got))
			require.Equal(t, alone.Evaluations, stats.Evaluations+stats.CacheHits)
			require.Equal(t, alone.SetsAccepted, stats.SetsAccepted)
			require.Equal(t, test.known, stats.CacheHits == 1)
		})
	}
}

// The exhaustive search uses no cached verdicts.
func TestExhaustiveSearchUsesNoCache(t *testing.T) {
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

// A context or a budget may end a search at any point. The search then leaves no wrong result in the cache.
func TestInterruptedSearchesLeaveNothingWrong(t *testing.T) {
	s := given(t, "allocated mla-00 mla-12; claim c; want x 4; cel grid = $neighbors; cel late = devices.slice(0, 1).size() == 1")
	s.Slices = []*sliceBuilder{slice("1", mesh(3, 3)...)}
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
		_, err := a.Allocate(ctx, s.OnNode(), s.APIClaims())
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

// endingContext is a context that ends after a number of checks.
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

// Value hides the values of the inner context. Otherwise package context would find the inner context's cause of cancellation.
func (e *endingContext) Value(any) any { return nil }

// A failure excludes only the node if the constraint declares this. The message names the node that was asked for, even if the
// cache stored the failure for another node.
func TestFailuresOfOneNode(t *testing.T) {
	const detail = "claim default/c, constraint row, node node-1, devices [mla.example.com/pool-1/mla-0, mla.example.com/pool-1/mla-1]: the expression fails: line 1, column 92: no such key: row" +
		". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
	const nodes = `slice bad; devices 4 mla-# index=#
slice good node=node-2 pool=pool-2; device mla-0 index=0 row=0; device mla-1 index=1 row=0; device mla-2 index=2 row=1; device mla-3 index=3 row=1
slice third node=node-3 pool=pool-3; devices 4 mla-# index=#`
	const failing = "; claim c; want x 2; cel row; define row failurePolicy=%s = devices.all(d, $at.index < 9 && $at.row == 1)"
	_, err := given(t, nodes+fmt.Sprintf(failing, "Fail")).allocate(t)
	require.ErrorContains(t, err, "no such key: row")
	require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)

	s := given(t, nodes+fmt.Sprintf(failing, "NodeDoesNotFit"))
	for name, opts := range map[string][]option{"exhaustive": {WithExhaustiveSearch()}, "pruned": nil, "cached": {WithCache(NewCache())}} {
		t.Run(name, func(t *testing.T) {
			s := s
			s.Options = append([]option{WithReasons()}, opts...)
			for range 3 {
				_, err := s.allocate(t)
				require.ErrorIs(t, err, structured.ErrFailedAllocationOnNode)
				require.EqualError(t, err, "constraint row: the expression fails on devices of the node: "+detail[strings.Index(detail, "line"):])
				var failure *EvaluationError
				require.ErrorAs(t, err, &failure)
				require.Equal(t, cel.ReasonRuntime, failure.Reason)
				require.Equal(t, detail, failure.Detail())
			}
			s.Node = newNode("node-2")
			s.requireDevices(t, "x=mla-2", "x=mla-3")

			// A node whose devices look the same gets the cached failure. The message has its own names.
			s.Node = newNode("node-3")
			_, err := s.allocate(t)
			var failure *EvaluationError
			require.ErrorAs(t, err, &failure)
			require.Equal(t, strings.NewReplacer("node-1", "node-3", "pool-1", "pool-3").Replace(detail), failure.Detail())
		})
	}
	s.Options = nil
	s.requireDevices(t)
}

// An evaluation that exceeds its cost limit excludes only the node. An exhausted budget is an error for all nodes, because
// earlier searches used part of the budget.
func TestLimitsOfOneEvaluationAreOfTheNode(t *testing.T) {
	expensive := "devices.all(a, devices.all(b, devices.all(c, devices.all(d, devices.all(e, devices.all(f, string(a.driver).size() > 0))))))"
	s := given(t, "devices 20 mla-# index=#; claim c; want x 20; cel a; define a failurePolicy=NodeDoesNotFit = "+expensive).with(WithReasons())
	_, err := s.allocate(t)
	var failure *EvaluationError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, cel.ReasonCostLimit, failure.Reason)

	_, err = given(t, "devices 20 mla-# index=#; option cost=1; claim c; want x 2; cel a; define a failurePolicy=NodeDoesNotFit = devices.slice(0, 1).size() == 2").allocate(t)
	require.ErrorAs(t, err, new(*BudgetError))
	require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)
}
