// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/search"
	"github.com/celset/celset/cel"
)

// fourInARow has a CEL constraint, an attribute constraint, a selector and devices in use.
const fourInARow = `slice 2 pool=pool-2 everywhere; devices 3 shared-# index=2#; allocated mla-1
slice 1; devices 8 mla-# index=#
claim a; want row 4 if $device.index >= 0; distinct index; cel row = $row; claim b; want one 1`

var wantFourInARow = []string{"row=mla-2", "row=mla-3", "row=mla-4", "row=mla-5", "one=mla-0"}

// One allocator serves any number of nodes, sequentially and concurrently. Calls don't affect each other's answers.
func TestOneAllocatorManyCalls(t *testing.T) {
	s := given(t, fourInARow+"; slice 3 pool=node-2 node=node-2; devices 4 mla-# index=#")
	s.opts = []Option{WithReasons()}
	a, claims := s.allocator(t), s.apiClaims()
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
	require.Same(t, own, scenario{opts: []Option{WithEnvironment(own)}}.allocator(t).planner.Environment)
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
		results, err := s.allocator(t).Allocate(ctx, s.onNode(), s.apiClaims())
		require.Nil(t, results)
		require.EqualError(t, err, message)
		require.ErrorIs(t, err, ctx.Err())
		require.ErrorIs(t, err, context.Cause(ctx))
		require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)
	}
}

// cancelAfter is an Observer that cancels after a number of evaluations.
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

// watched is a context that ends when its Done channel is first requested. An evaluation of an expression requests the channel.
type watched struct {
	context.Context
	cancel func()
}

func (w watched) Done() <-chan struct{} {
	w.cancel()
	return w.Context.Done()
}

func cancelledWhenWatched(t *testing.T, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	return watched{ctx, func() { cancel(cause) }}
}

// If the context ends during an evaluation, the evaluation stops.
func TestContextEndsDuringEvaluation(t *testing.T) {
	s := given(t, "devices 16 mla-# index=#; claim c; want x 16; "+
		"cel slow = devices.slice(0, 16).all(a, devices.all(b, devices.all(c, a == b || b != c || a != c)))").search(t)
	s.Ctx = cancelledWhenWatched(t, nil)
	c, r := s.CELConstraints[0], s.Requests[0][0][0]
	satisfied, err := r.Decide()
	require.NoError(t, err)
	require.True(t, satisfied)
	for i, candidate := range s.Inventory.Candidates {
		added, err := c.Add(&r.Request, candidate)
		if i < 15 {
			require.NoError(t, err)
			require.True(t, added)
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "claim default/c, constraint slow, node node-1, devices [mla.example.com/pool-1/mla-0, ")
		require.ErrorContains(t, err, "evaluation interrupted: context canceled")
		require.Len(t, c.Members, 15)
	}
}

// testdata/transcripts/stats.txt shows the work of single calls. The counts add up, and a cached answer costs no work.
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
			_, stats, _ := a.AllocateWithStats(t.Context(), s.onNode(), s.apiClaims())
			total = answer.Sum(total, next)
			require.Equal(t, next, stats)
			require.Equal(t, total, a.Stats())
			if want.Cuts > 0 {
				next = Stats{CacheHits: 1, AnswersKnown: 1}
			}
		}
	}
}

// A search notices cancellation before any expensive work. Between two checks of the context it makes at most one step, and at
// most one evaluation of a constraint, a selector or a derived attribute. Evaluations check the context themselves.

// atDepth is a context that is cancelled at its nth check at a certain depth of the search. It records the work done until then.
type atDepth struct {
	context.Context
	search             *search.Search
	depth, times       int
	steps, evaluations int64
	cancelled          bool
}

func (a *atDepth) Err() error {
	if !a.cancelled && len(a.search.Solution.Choices) == a.depth {
		if a.times--; a.times == 0 {
			a.cancelled = true
			a.steps, a.evaluations = a.search.Work.Steps, a.search.Stats().Evaluations
		}
	}
	if a.cancelled {
		return context.Canceled
	}
	return nil
}

// A search for 12 of 24 devices, with 2.7 million sets, ends as soon as it is cancelled, at any depth and for expressions with
// and without bounds.
func TestCancellationIsNoticedAtAnyDepth(t *testing.T) {
	const wanted = 12
	for name, expression := range map[string]string{
		"unread": unread,
		"read":   inARow,
	} {
		for _, depth := range []int{0, 1, 2, 5, 8, 10, wanted - 1} {
			for _, times := range []int{1, 2, 30} {
				if times > 1 && (depth < 8 || expression != unread) {
					continue // The search returns to this depth only much later, or finds its answer before.
				}
				t.Run(fmt.Sprintf("%s/depth %d, time %d", name, depth, times), func(t *testing.T) {
					s := given(t, "devices 24 mla-# index=#; claim c; want x 12; cel shape = "+expression).search(t)
					ctx := &atDepth{Context: t.Context(), search: s, depth: depth, times: times}
					s.Ctx, s.Evaluator.Context, s.Work.Ctx = ctx, ctx, ctx
					found, err := s.Run()
					require.False(t, found)
					require.EqualError(t, err, "filter operation aborted: context canceled")
					require.ErrorIs(t, err, context.Canceled)
					require.True(t, ctx.cancelled)
					require.LessOrEqual(t, s.Work.Steps, ctx.steps+1)
					require.LessOrEqual(t, s.Stats().Evaluations, ctx.evaluations+1)
					require.Empty(t, s.Solution.Choices, "everything was given back")
				})
			}
		}
	}
}

// Between sets that differ in the last device the search makes no step, but evaluates each set.
func TestCancellationBetweenEvaluations(t *testing.T) {
	for evaluations := 1; evaluations < 40; evaluations++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := given(t, "devices 24 mla-# index=#; claim c; want x 12; cel shape = $unread").
			with(WithEnvironment(environmentWith(t, cel.Config{Observer: &cancelAfter{evaluations: evaluations, cancel: cancel}})))
		a := s.allocator(t)
		_, err := a.Allocate(ctx, s.onNode(), s.apiClaims())
		require.EqualError(t, err, "filter operation aborted: context canceled: enough")
		require.Equal(t, int64(evaluations), a.Stats().Evaluations)
	}
}

// One step may examine all devices. After cancellation it evaluates no selector, no derived attribute, and no set that an
// alternative completes.
func TestNothingIsEvaluatedAfterCancellation(t *testing.T) {
	s := given(t, `devices 3 mla-# index=#; claim c; want x 1 if $device.index >= 0; derive color = $device.index >= 0 ? 'red' : 'blue'
first y; sub none 0; cel shape = true`).search(t)
	r, c, device := s.Requests[0][0][0], s.CELConstraints[0], s.Inventory.Candidates[0]
	ctx, cancel := context.WithCancel(t.Context())
	s.Ctx, s.Evaluator.Context, s.Work.Ctx = ctx, ctx, ctx
	_, err := r.Decide()
	require.NoError(t, err)
	added, err := c.Add(&r.Request, device)
	require.NoError(t, err)
	require.True(t, added)
	cancel()

	for what, evaluate := range map[string]func() error{
		"selector":          func() error { _, err := r.IsSelected(device); return err },
		"derived attribute": func() error { _, err := s.Evaluator.Attribute(&r.Request, device, color); return err },
		"added device":      func() error { _, err := c.Add(&r.Request, s.Inventory.Candidates[1]); return err },
		"alternative":       func() error { _, err := s.Requests[0][1][0].Decide(); return err },
	} {
		require.ErrorContains(t, evaluate(), "filter operation aborted: context canceled", what)
		require.ErrorIs(t, evaluate(), context.Canceled, what)
	}
	require.Zero(t, s.Stats().Evaluations)
	require.Len(t, c.Members, 1, "nothing has changed")
	require.Equal(t, 1, c.Undecided)
}
