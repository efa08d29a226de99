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
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/cel"
)

// fleetOf has one slice of n devices for each name, no two with the same hardware, so that
// nothing that was found out about one node is good for another.
func fleetOf(n int, names ...string) []*sliceBuilder {
	var slices []*sliceBuilder
	for i, name := range names {
		devices := make([]resourceapi.Device, n)
		for j := range devices {
			devices[j] = newDevice(fmt.Sprintf("mla-%d", j), attrs{"index": 100*i + j})
		}
		slices = append(slices, slice(name, devices...).onNode(name).pool(name, 1, 1))
	}
	return slices
}

func nodeNamed(name string) *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// searchFleet is a scenario without an answer but by trying everything, on each node.
func searchFleet(constraint string, names ...string) scenario {
	return scenario{
		slices: fleetOf(8, names...),
		claims: []*claimBuilder{claim("c").want("mla", 4).cel("shape").define("shape", constraint)},
	}
}

func TestAttemptBudgetIsForAllNodes(t *testing.T) {
	s := searchFleet(unread, "a", "b", "c")
	once := NewAttemptBudget(math.MaxUint64, math.MaxInt64)
	s.opts = []Option{WithAttemptBudget(once)}
	a := s.allocator(t)
	results, err := a.Allocate(t.Context(), nodeNamed("a"), s.apiClaims())
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
			NewAttemptBudget(2*once.Cost(), math.MaxInt64), BudgetCost,
			"the evaluations on all nodes together exceed the cost budget of ",
		},
		"steps": {
			NewAttemptBudget(math.MaxUint64, 2*once.Steps()), BudgetSteps,
			"the searches on all nodes together exceed the step budget of ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.opts = []Option{WithAttemptBudget(test.budget)}
			a := s.allocator(t)
			for _, name := range []string{"a", "b"} {
				_, err := a.Allocate(t.Context(), nodeNamed(name), s.apiClaims())
				require.NoError(t, err, "a budget may be used up")
			}
			test.budget.cost.Add(1)
			test.budget.steps.Add(1)
			_, err := a.Allocate(t.Context(), nodeNamed("c"), s.apiClaims())
			failure, ok := errors.AsType[*BudgetError](err)
			require.True(t, ok, err)
			require.True(t, failure.Attempt)
			require.Equal(t, test.unit, failure.Unit)
			require.Equal(t, "c", failure.Node)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "or raise budget.attempt"+map[BudgetUnit]string{BudgetCost: "Cost", BudgetSteps: "Steps"}[test.unit]+" in ")
			require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)

			steps := a.Stats().Steps
			_, err = a.Allocate(t.Context(), nodeNamed("c"), s.apiClaims())
			require.ErrorAs(t, err, new(*BudgetError))
			require.LessOrEqual(t, a.Stats().Steps-steps, int64(1), "nothing is begun any more")
		})
	}
}

// However many searches run at the same time, they use up no more than the budget, a batch
// for each of them and an evaluation.
func TestAttemptBudgetBoundsConcurrentSearches(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	s := searchFleet(unread, names...)
	s.slices = fleetOf(16, names...)
	budget := NewAttemptBudget(math.MaxUint64, 3000)
	s.opts = []Option{WithAttemptBudget(budget)}
	a := s.allocator(t)
	var group sync.WaitGroup
	failures := make([]error, len(names))
	for i, name := range names {
		group.Go(func() { _, failures[i] = a.Allocate(t.Context(), nodeNamed(name), s.apiClaims()) })
	}
	group.Wait()
	require.ErrorAs(t, errors.Join(failures...), new(*BudgetError))
	require.Greater(t, budget.Steps(), int64(3000))
	require.LessOrEqual(t, budget.Steps(), int64(3000+attemptStepBatch*len(names)))
	require.Equal(t, a.Stats().Steps, budget.Steps())
}

func TestEndedAttempt(t *testing.T) {
	over := errors.New("others wait")
	for name, s := range map[string]scenario{
		"with CEL constraint":    searchFleet(unread, "a"),
		"without CEL constraint": {slices: fleetOf(8, "a"), claims: []*claimBuilder{claim("c").want("mla", 4)}},
	} {
		t.Run(name, func(t *testing.T) {
			budget := NewAttemptBudget(math.MaxUint64, math.MaxInt64)
			s.opts = []Option{WithAttemptBudget(budget)}
			a := s.allocator(t)
			budget.End(over)
			budget.End(errors.New("too late"))
			_, err := a.Allocate(t.Context(), nodeNamed("a"), s.apiClaims())
			require.ErrorIs(t, err, over)
			require.ErrorContains(t, err, "filter operation aborted: others wait")

			s.opts = nil
			_, err = s.allocator(t).Allocate(t.Context(), nodeNamed("a"), s.apiClaims())
			require.NoError(t, err, "nothing is kept of it")
		})
	}
}

// A search without CEL constraints behaves as upstream's, which has no budget.
func TestAttemptBudgetIsForCELConstraints(t *testing.T) {
	s := scenario{slices: fleetOf(8, "a"), claims: []*claimBuilder{claim("c").want("mla", 4)}}
	budget := NewAttemptBudget(0, 0)
	s.opts = []Option{WithAttemptBudget(budget)}
	results, err := s.allocator(t).Allocate(t.Context(), nodeNamed("a"), s.apiClaims())
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Zero(t, budget.Steps())
}

// An attempt that is not over budget finds what it would find without.
func TestAttemptBudgetChangesNoAnswer(t *testing.T) {
	s := searchFleet(inARow, "a", "b")
	s.opts = []Option{WithAttemptBudget(NewAttemptBudget(cel.DefaultCostLimit, 1000))}
	a := s.allocator(t)
	for _, name := range []string{"a", "b"} {
		results, err := a.Allocate(t.Context(), nodeNamed(name), s.apiClaims())
		require.NoError(t, err)
		require.Len(t, results[0].Devices.Results, 4)
	}
	require.Positive(t, a.Stats().Steps)
}
