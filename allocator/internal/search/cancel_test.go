// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A search stops before any expensive work when its context is cancelled. Between two checks of the context the search makes at
// most one step, and at most one evaluation of a constraint, a selector or a derived attribute. Evaluations check the context
// themselves.

// If the context ends during an evaluation, the evaluation stops.
func TestContextEndsDuringEvaluation(t *testing.T) {
	s := given(t, "devices 16 mla-# index=#; claim c; want x 16; "+
		"cel slow = devices.slice(0, 16).all(a, devices.all(b, devices.all(c, a == b || b != c || a != c)))").search(t)
	s.Ctx = cancelledWhenWatched(t, nil)
	c, r := s.celConstraints[0], s.Requests[0][0][0]
	satisfied, err := r.decide()
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
		require.Len(t, c.members, 15)
	}
}

// atDepth is a context that is cancelled at its nth check at a given depth of the search. It records the work until then.
type atDepth struct {
	context.Context
	search             *Search
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

// A search for 12 of 24 devices has 2.7 million sets. It ends as soon as its context is cancelled, at any depth, with and
// without bounds.
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
					s.Ctx, s.evaluator.Context, s.Work.Ctx = ctx, ctx, ctx
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

// One step may examine all devices. After a cancellation the search evaluates no selector, no derived attribute, and no
// constraint whose set becomes complete because an alternative adds no devices.
func TestNothingIsEvaluatedAfterCancellation(t *testing.T) {
	s := given(t, `devices 3 mla-# index=#; claim c; want x 1 if $device.index >= 0; derive color = $device.index >= 0 ? 'red' : 'blue'
first y; sub none 0; cel shape = true`).search(t)
	r, c, device := s.Requests[0][0][0], s.celConstraints[0], s.Inventory.Candidates[0]
	ctx, cancel := context.WithCancel(t.Context())
	s.Ctx, s.evaluator.Context, s.Work.Ctx = ctx, ctx, ctx
	_, err := r.decide()
	require.NoError(t, err)
	added, err := c.Add(&r.Request, device)
	require.NoError(t, err)
	require.True(t, added)
	cancel()

	for what, evaluate := range map[string]func() error{
		"selector":          func() error { _, err := r.isSelected(device); return err },
		"derived attribute": func() error { _, err := s.evaluator.Attribute(&r.Request, device, color); return err },
		"added device":      func() error { _, err := c.Add(&r.Request, s.Inventory.Candidates[1]); return err },
		"alternative":       func() error { _, err := s.Requests[0][1][0].decide(); return err },
	} {
		require.ErrorContains(t, evaluate(), "filter operation aborted: context canceled", what)
		require.ErrorIs(t, evaluate(), context.Canceled, what)
	}
	require.Zero(t, s.Stats().Evaluations)
	require.Len(t, c.members, 1, "nothing has changed")
	require.Equal(t, 1, c.undecided)
}
