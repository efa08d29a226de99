// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/cel"
)

// fourInARow describes a claim with a CEL constraint, an attribute constraint and a selector, and some devices in use.
const fourInARow = `slice 2 pool=pool-2 everywhere; devices 3 shared-# index=2#; allocated mla-1
slice 1; devices 8 mla-# index=#
claim a; want row 4 if $device.index >= 0; distinct index; cel row = $row; claim b; want one 1`

var wantFourInARow = []string{"row=mla-2", "row=mla-3", "row=mla-4", "row=mla-5", "one=mla-0"}

// One allocator serves any number of nodes, sequentially and concurrently. A call does not change the results of other calls.
func TestOneAllocatorManyCalls(t *testing.T) {
	s := given(t, fourInARow+"; slice 3 pool=node-2 node=node-2; devices 4 mla-# index=#")
	s.Options = []option{WithReasons()}
	a, claims := s.allocator(t), s.APIClaims()
	check := func(ctx context.Context) {
		for node, want := range map[string][]string{
			nodeName: wantFourInARow,
			"node-2": {"row=mla-0", "row=mla-1", "row=mla-2", "row=mla-3", "one=shared-0"},
			"node-3": nil, // only the three devices for all nodes
		} {
			results, err := a.Allocate(ctx, newNode(node), claims)
			if diff := cmp.Diff(want, devicesOf(results)); diff != "" || (err == nil) != (want != nil) {
				t.Errorf("%s: %v%s", node, err, diff)
			}
		}
	}
	check(t.Context())
	check(t.Context())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { check(context.Background()) })
	}
	group.Wait()
}

func TestNewAllocatorUsesSharedEnvironment(t *testing.T) {
	require.Same(t, scenario{}.allocator(t).planner.Environment, scenario{}.allocator(t).planner.Environment)
	own := environmentWith(t, cel.Config{})
	require.Same(t, own, scenario{fixture.Scenario{Options: []option{WithEnvironment(own)}}}.allocator(t).planner.Environment)
}

func TestEndedContext(t *testing.T) {
	cause, past := errors.New("the pod was deleted"), time.Now().Add(-time.Second)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	withCause, end := context.WithCancelCause(t.Context())
	end(cause)
	late, cancelLate := context.WithDeadline(t.Context(), past)
	defer cancelLate()
	lateWithCause, cancelLateWithCause := context.WithDeadlineCause(t.Context(), past, cause)
	defer cancelLateWithCause()
	for message, ctx := range map[string]context.Context{
		"filter operation aborted: context canceled":                               cancelled,
		"filter operation aborted: context canceled: the pod was deleted":          withCause,
		"filter operation aborted: context deadline exceeded":                      late,
		"filter operation aborted: context deadline exceeded: the pod was deleted": lateWithCause,
	} {
		s := given(t, fourInARow).with(WithReasons())
		results, err := s.allocator(t).Allocate(ctx, s.OnNode(), s.APIClaims())
		require.Nil(t, results)
		require.EqualError(t, err, message)
		require.ErrorIs(t, err, ctx.Err())
		require.ErrorIs(t, err, context.Cause(ctx))
		require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)
	}
}

// cancelAfter is an Observer that cancels a context after a number of evaluations.
type cancelAfter struct {
	cel.Observer
	evaluations int
	cancel      context.CancelCauseFunc
}

func (c *cancelAfter) ObserveCompilation(string, bool, error) {}

func (c *cancelAfter) ObserveEvaluation(string, uint64, error) {
	if c.evaluations--; c.evaluations == 0 {
		c.cancel(errors.New("enough"))
	}
}

// testdata/transcripts/stats.txt shows the work of single calls. Stats adds up all calls. A cached result costs no work.
func TestStats(t *testing.T) {
	for statements, want := range map[string]Stats{
		"claim c; want x 4":                         {Steps: 6},
		"claim c; want x 4; cel never = false":      {Steps: 1, Cuts: 1},
		"claim c; want x 1; want y 1 if 1 / 0 == 1": {Steps: 2},
	} {
		s := given(t, "devices 6 mla-# index=#; "+statements)
		a := s.allocator(t)
		require.Zero(t, a.Stats())
		total, next := Stats{}, want
		for range 3 {
			_, stats, _ := a.AllocateWithStats(t.Context(), s.OnNode(), s.APIClaims())
			total = answer.Sum(total, next)
			require.Equal(t, next, stats)
			require.Equal(t, total, a.Stats())
			if want.Cuts > 0 {
				next = Stats{CacheHits: 1, AnswersKnown: 1}
			}
		}
	}
}

// The search notices a cancellation between two sets that differ only in the last device. It makes no step between such sets.
func TestCancellationBetweenEvaluations(t *testing.T) {
	for evaluations := 1; evaluations < 40; evaluations++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := given(t, "devices 24 mla-# index=#; claim c; want x 12; cel shape = $unread").
			with(WithEnvironment(environmentWith(t, cel.Config{Observer: &cancelAfter{evaluations: evaluations, cancel: cancel}})))
		a := s.allocator(t)
		_, err := a.Allocate(ctx, s.OnNode(), s.APIClaims())
		require.EqualError(t, err, "filter operation aborted: context canceled: enough")
		require.Equal(t, int64(evaluations), a.Stats().Evaluations)
	}
}
