// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/fixture"
)

// requireBudgetError requires that the search for the scenario exhausts its budget. It returns the error and the work.
func (s scenario) requireBudgetError(t testing.TB, opts ...option) (*BudgetError, Stats) {
	t.Helper()
	s.Options = append(s.Options, opts...)
	a := s.allocator(t)
	results, err := a.Allocate(t.Context(), s.OnNode(), s.APIClaims())
	require.Nil(t, results)
	var failure *BudgetError
	require.ErrorAs(t, err, &failure)
	require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)
	return failure, a.Stats()
}

// The bounds evaluate an expression for single devices and pairs and store the values in tables. The budget is charged for
// these evaluations. If the budget is exhausted, tables are incomplete, and the search must not cut a branch because of them.
func TestBudgetIsForTablesToo(t *testing.T) {
	s := given(t, "devices 8 mla-# index=#; claim c; want mla 4; cel row = $row && $indices.min() == 3")
	search := s.search(t)
	found, err := search.Run()
	require.NoError(t, err)
	require.True(t, found)
	for cost := range search.Work.Cost.Spent() {
		failure, _ := s.requireBudgetError(t, WithCostBudget(cost))
		require.Equal(t, BudgetCost, failure.Unit)
		require.Equal(t, "row", failure.Constraint)
		require.Equal(t, "70", failure.Sets.String())
		require.Positive(t, failure.SetsLeft.Sign())
	}
	s.Options = []option{WithCostBudget(search.Work.Cost.Spent())}
	s.requireDevices(t, "mla=mla-3", "mla=mla-4", "mla=mla-5", "mla=mla-6")
}

// A call may use its budget completely. Each Allocate call has a budget of its own.
func TestBudgetsArePerCall(t *testing.T) {
	s := given(t, "devices 5 mla-# index=#; claim c; want mla 3; cel shape = $unread")
	_, stats := s.answer(t)
	for _, enough := range []option{WithStepBudget(stats.Steps), WithCostBudget(uint64(stats.Cost))} {
		a := s.with(enough).allocator(t)
		for range 3 {
			_, err := a.Allocate(t.Context(), s.OnNode(), s.APIClaims())
			require.NoError(t, err)
		}
	}
	_, _ = s.requireBudgetError(t, WithStepBudget(stats.Steps-1))
	failure, _ := s.requireBudgetError(t, WithCostBudget(uint64(stats.Cost)-1))
	require.Equal(t, []int64{1, 10}, []int64{failure.SetsLeft.Int64(), failure.Sets.Int64()})
	for _, limit := range []int64{0, -1, math.MinInt64} {
		failure, _ := s.requireBudgetError(t, WithStepBudget(limit))
		require.Zero(t, failure.Limit)
	}
}

// An exhaustive search is stopped at every possible point. The error then counts exactly the sets that were not evaluated.
func TestSetsLeftAreNotEvaluated(t *testing.T) {
	const odd, even = index + " % 2 == 1", index + " % 2 == 0"
	for name, test := range map[string]struct {
		claim *claimBuilder
		sets  int64
	}{
		"one request":              {claim("c").Want("x", 3), 20},
		"one of one":               {claim("c").Want("x", 6), 1},
		"several requests":         {claim("c").Want("x", 1, odd).Want("y", 2, even), 3 * 3},
		"request between":          {claim("c").Want("x", 2, odd).Want("z", 0).Want("y", 2, even), 3 * 3},
		"all, and a choice":        {claim("c").WantAll("x", odd).Want("y", 2, even), 3},
		"a choice, and all":        {claim("c").Want("y", 2, even).WantAll("x", odd), 3},
		"selector fails on others": {claim("c").Want("x", 2, "1 / ("+index+" - 9) == 0 && "+index+" < 4"), 6},
		"wants nothing in the end": {claim("c").Want("x", 2).Want("y", 0), 15},
		"in use by administrators": {claim("c").Want("x", 2).Admin(), 15},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{fixture.Scenario{
				Slices:  []*sliceBuilder{slice("1", ring(6)...)},
				Claims:  []*claimBuilder{test.claim.Cel("shape").Define("shape", unread)},
				Options: []option{WithExhaustiveSearch()},
			}}
			_, whole := s.answer(t)
			require.Equal(t, test.sets, whole.Evaluations)
			for steps := range whole.Steps {
				failure, stats := s.requireBudgetError(t, WithStepBudget(steps))
				require.Equal(t, test.sets, failure.Sets.Int64())
				require.Equal(t, test.sets-stats.Evaluations, failure.SetsLeft.Int64(), "after %d steps", steps)
			}
			cost := s.costOfOne(t)
			for evaluations := range uint64(test.sets) {
				failure, _ := s.requireBudgetError(t, WithCostBudget(evaluations*cost))
				require.Equal(t, test.sets, failure.Sets.Int64())
				require.Equal(t, test.sets-int64(evaluations), failure.SetsLeft.Int64(), "after %d evaluations", evaluations)
			}
		})
	}
}

// costOfOne returns the cost of one evaluation. The expression must have the same cost for all sets.
func (s scenario) costOfOne(t testing.TB) uint64 {
	t.Helper()
	search := s.search(t)
	_, err := search.Run()
	require.NoError(t, err)
	evaluations := uint64(search.Stats().Evaluations)
	require.Zero(t, search.Work.Cost.Spent()%evaluations)
	return search.Work.Cost.Spent() / evaluations
}

// For a prioritized list, the error counts only sets of the alternative that the search was trying.
func TestSetsLeftWithAlternatives(t *testing.T) {
	for statements, test := range map[string]struct {
		evaluations uint64
		left, sets  int64
	}{
		"first x; sub four 4; sub two 2; cel shape":                   {4, 11, 15},
		"first x; sub four 4; sub two 2; cel  shape":                  {15 + 4, 11, 15}, // the second alternative
		"first x; sub four 4; sub one 1; cel shape":                   {15 + 4, 2, 6},
		"first x; sub none 9; sub three 3; cel shape x/three":         {4, 16, 20},
		"want y 2; first x; sub none 1; sub two 2; cel shape y x/two": {0, 15, 15},
	} {
		s := given(t, "devices 6 mla-# index=#; claim c; "+statements+" = $unread").with(WithExhaustiveSearch())
		failure, _ := s.requireBudgetError(t, WithCostBudget(test.evaluations*s.costOfOne(t)))
		require.Equal(t, []int64{test.left, test.sets}, []int64{failure.SetsLeft.Int64(), failure.Sets.Int64()}, statements)
	}
}

// With several constraints, the error names the constraint whose set the search was completing.
func TestBudgetErrorNamesTheConstraint(t *testing.T) {
	s := given(t, `devices 6 mla-# index=#; claim a; want x 2; cel first = devices.size() == 2
claim b; want y 3 if $device.index > 1; want z 1; cel second y = true; cel third = $unread`)
	found := map[string]string{}
	for steps := range int64(9) {
		failure, _ := s.requireBudgetError(t, WithExhaustiveSearch(), WithStepBudget(steps))
		found[fmt.Sprint(steps)] = fmt.Sprintf("%s/%s %d of %d", failure.Claim.Name, failure.Constraint, failure.SetsLeft, failure.Sets)
	}
	require.Equal(t, map[string]string{
		"0": "a/first 15 of 15", // before the first device
		"1": "a/first 15 of 15",
		"2": "b/second 4 of 4", // the set of first is complete
		"3": "b/second 4 of 4",
		"4": "b/third 24 of 24", // y gets devices of both, the last is named
		"5": "b/third 24 of 24",
		"6": "b/third 24 of 24", // the set of second is complete
		"7": "b/third 18 of 24",
		"8": "b/third 12 of 24",
	}, found)

	cost, _ := s.requireBudgetError(t, WithCostBudget(1))
	require.Equal(t, "third", cost.Constraint, "no evaluation is needed for the others")
}

// If all sets are complete, the error names the last constraint, because the search would next try another set for it.
func TestBudgetErrorAfterTheConstraints(t *testing.T) {
	s := given(t, "devices 6 mla-# index=#; claim a; want x 2; cel last = $indices.sum() > 3; claim b; want y 5")
	search := s.search(t)
	_, err := search.Run()
	require.NoError(t, err)
	for steps := range search.Work.Steps {
		failure, _ := s.requireBudgetError(t, WithStepBudget(steps))
		require.Equal(t, "last", failure.Constraint)
		require.Equal(t, "15", failure.Sets.String())
		require.GreaterOrEqual(t, failure.SetsLeft.Sign(), 0)
		require.LessOrEqual(t, failure.SetsLeft.Cmp(failure.Sets), 0)
	}
}

// fleetOf returns one slice of n devices for each name. All slices differ, so that nodes share no cached results.
func fleetOf(n int, names ...string) []*sliceBuilder {
	var slices []*sliceBuilder
	for i, name := range names {
		devices := make([]resourceapi.Device, n)
		for j := range devices {
			devices[j] = newDevice(fmt.Sprintf("mla-%d", j), attrs{"index": 100*i + j})
		}
		slices = append(slices, slice(name, devices...).OnNode(name).Pool(name, 1, 1))
	}
	return slices
}

// searchFleet returns a scenario with nodes where the search must try every set.
func searchFleet(constraint string, names ...string) scenario {
	return scenario{fixture.Scenario{
		Slices: fleetOf(8, names...),
		Claims: []*claimBuilder{claim("c").Want("mla", 4).Cel("shape").Define("shape", constraint)},
	}}
}

func TestAttemptBudgetIsForAllNodes(t *testing.T) {
	s := searchFleet(unread, "a", "b", "c", "d")
	once := NewAttemptBudget(Budget{Cost: math.MaxUint64, Steps: math.MaxInt64})
	s.Options = []option{WithAttemptBudget(once)}
	a := s.allocator(t)
	results, err := a.Allocate(t.Context(), newNode("a"), s.APIClaims())
	require.NoError(t, err)
	require.Nil(t, results)
	stats := a.Stats()
	require.Equal(t, stats.Steps, once.Steps(), "all of it was charged when the search had ended")
	require.Equal(t, uint64(stats.Cost), once.Cost())

	for name, test := range map[string]struct {
		budget *AttemptBudget
		unit   BudgetUnit
		want   string
	}{
		"cost": {
			NewAttemptBudget(Budget{Cost: 2 * once.Cost(), Steps: math.MaxInt64}), BudgetCost,
			"the evaluations on all nodes together exceed the cost budget of ",
		},
		"steps": {
			NewAttemptBudget(Budget{Cost: math.MaxUint64, Steps: 2 * once.Steps()}), BudgetSteps,
			"the searches on all nodes together exceed the step budget of ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.Options = []option{WithAttemptBudget(test.budget)}
			a := s.allocator(t)
			for _, name := range []string{"a", "b"} {
				_, err := a.Allocate(t.Context(), newNode(name), s.APIClaims())
				require.NoError(t, err, "a budget may be used up")
			}
			var err error
			node := ""
			for _, node = range []string{"c", "d"} {
				// A search charges its remaining cost to the attempt when it ends.
				if _, err = a.Allocate(t.Context(), newNode(node), s.APIClaims()); err != nil {
					break
				}
			}
			failure, ok := errors.AsType[*BudgetError](err)
			require.True(t, ok, err)
			require.True(t, failure.Attempt)
			require.Equal(t, test.unit, failure.Unit)
			require.Equal(t, node, failure.Node)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "or raise budget."+map[BudgetUnit]string{BudgetCost: "cost", BudgetSteps: "steps"}[test.unit]+" in ")
			require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)

			steps := a.Stats().Steps
			_, err = a.Allocate(t.Context(), newNode("d"), s.APIClaims())
			require.ErrorAs(t, err, new(*BudgetError))
			require.LessOrEqual(t, a.Stats().Steps-steps, int64(1), "nothing is begun any more")
		})
	}
}

// Concurrent searches together exceed the budget by at most one batch and one evaluation for each search.
func TestAttemptBudgetBoundsConcurrentSearches(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	s := searchFleet(unread, names...)
	s.Slices = fleetOf(16, names...)
	budget := NewAttemptBudget(Budget{Cost: math.MaxUint64, Steps: 3000})
	s.Options = []option{WithAttemptBudget(budget)}
	a := s.allocator(t)
	var group sync.WaitGroup
	failures := make([]error, len(names))
	for i, name := range names {
		group.Go(func() { _, failures[i] = a.Allocate(t.Context(), newNode(name), s.APIClaims()) })
	}
	group.Wait()
	require.ErrorAs(t, errors.Join(failures...), new(*BudgetError))
	require.Greater(t, budget.Steps(), int64(3000))
	const batch = 256
	require.LessOrEqual(t, budget.Steps(), int64(3000+batch*len(names)))
	require.Equal(t, a.Stats().Steps, budget.Steps())
}

func TestEndedAttempt(t *testing.T) {
	over := errors.New("others wait")
	for name, s := range map[string]scenario{
		"with CEL constraint":    searchFleet(unread, "a"),
		"without CEL constraint": {fixture.Scenario{Slices: fleetOf(8, "a"), Claims: []*claimBuilder{claim("c").Want("mla", 4)}}},
	} {
		t.Run(name, func(t *testing.T) {
			budget := NewAttemptBudget(Budget{Cost: math.MaxUint64, Steps: math.MaxInt64})
			s.Options = []option{WithAttemptBudget(budget)}
			a := s.allocator(t)
			budget.End(over)
			budget.End(errors.New("too late"))
			_, err := a.Allocate(t.Context(), newNode("a"), s.APIClaims())
			require.ErrorIs(t, err, over)
			require.ErrorContains(t, err, "filter operation aborted: others wait")

			s.Options = nil
			_, err = s.allocator(t).Allocate(t.Context(), newNode("a"), s.APIClaims())
			require.NoError(t, err, "nothing is kept of it")
		})
	}
}

// Like upstream's allocator, a search without CEL constraints has no budget.
func TestAttemptBudgetIsForCELConstraints(t *testing.T) {
	s := scenario{fixture.Scenario{Slices: fleetOf(8, "a"), Claims: []*claimBuilder{claim("c").Want("mla", 4)}}}
	budget := NewAttemptBudget(Budget{Cost: 0, Steps: 0})
	s.Options = []option{WithAttemptBudget(budget)}
	results, err := s.allocator(t).Allocate(t.Context(), newNode("a"), s.APIClaims())
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Zero(t, budget.Steps())
}
