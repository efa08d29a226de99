// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

// Cancellation is noticed before anything else that may take long: between two
// looks at the context there is at most one step, and at most one evaluation of a
// constraint, a selector or a derived attribute, which themselves look at it.

// atDepth is a context that is cancelled when it is asked for the nth time by a
// search that has taken that many devices. It remembers what was done until then.
type atDepth struct {
	context.Context
	search             *search
	depth, times       int
	steps, evaluations int64
	cancelled          bool
}

func (a *atDepth) Err() error {
	if !a.cancelled && len(a.search.solution.choices) == a.depth {
		if a.times--; a.times == 0 {
			a.cancelled = true
			a.steps, a.evaluations = a.search.work.steps, a.search.evaluations()
		}
	}
	if a.cancelled {
		return context.Canceled
	}
	return nil
}

func (s *search) evaluations() int64 {
	var sum int64
	for _, c := range s.celConstraints {
		sum += c.evaluations
	}
	return sum
}

// The search of 12 of 24, 2.7 million sets, is over as soon as it is cancelled,
// however deep it is and whether or not it reads the expression.
func TestCancellationIsNoticedAtAnyDepth(t *testing.T) {
	const wanted = 12
	for name, expression := range map[string]string{
		"unread": unread,
		"read":   inARow,
	} {
		for _, depth := range []int{0, 1, 2, 5, 8, 10, wanted - 1} {
			for _, times := range []int{1, 2, 30} {
				if times > 1 && (depth < 8 || expression != unread) {
					continue // The search is not there again soon, or has its answer before.
				}
				t.Run(fmt.Sprintf("%s/depth %d, time %d", name, depth, times), func(t *testing.T) {
					s := scenario{
						slices: []*sliceBuilder{slice("1", ring(24)...)},
						claims: []*claimBuilder{claim("c").want("x", wanted).cel("shape").define("shape", expression)},
					}.search(t)
					ctx := &atDepth{Context: t.Context(), search: s, depth: depth, times: times}
					s.ctx, s.evaluator.Context, s.work.ctx = ctx, ctx, ctx
					found, err := s.run()
					require.False(t, found)
					require.EqualError(t, err, "filter operation aborted: context canceled")
					require.ErrorIs(t, err, context.Canceled)
					require.True(t, ctx.cancelled)
					require.LessOrEqual(t, s.work.steps, ctx.steps+1)
					require.LessOrEqual(t, s.evaluations(), ctx.evaluations+1)
					require.Empty(t, s.solution.choices, "everything was given back")
				})
			}
		}
	}
}

// Among the sets that differ in the last device there is no step, but an evaluation
// each.
func TestCancellationBetweenEvaluations(t *testing.T) {
	for evaluations := 1; evaluations < 40; evaluations++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := scenario{
			slices: []*sliceBuilder{slice("1", ring(24)...)},
			claims: []*claimBuilder{claim("c").want("x", 12).cel("shape").define("shape", unread)},
			opts:   []Option{WithEnvironment(environmentWith(t, cel.Config{Observer: &cancelAfter{evaluations: evaluations, cancel: cancel}}))},
		}
		a := s.allocator(t)
		_, err := a.Allocate(ctx, s.onNode(), s.apiClaims())
		require.EqualError(t, err, "filter operation aborted: context canceled: enough")
		require.Equal(t, int64(evaluations), a.Stats().Evaluations)
	}
}

// One step may look at all devices: no selector is evaluated any more, nor a derived
// attribute, nor a set because an alternative completes it.
func TestNothingIsEvaluatedAfterCancellation(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(3)...)},
		claims: []*claimBuilder{
			claim("c").want("x", 1, index+" >= 0").derive(color, index+" >= 0 ? 'red' : 'blue'").firstAvailable("y", sub("none", 0)).cel("shape").define("shape", "true"),
		},
	}.search(t)
	r, c, device := s.requests[0][0][0], s.celConstraints[0], s.inventory.Candidates[0]
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx, s.evaluator.Context, s.work.ctx = ctx, ctx, ctx
	_, err := r.decide()
	require.NoError(t, err)
	added, err := c.Add(&r.Request, device)
	require.NoError(t, err)
	require.True(t, added)
	cancel()

	for what, evaluate := range map[string]func() error{
		"selector":          func() error { _, err := r.isSelected(device); return err },
		"derived attribute": func() error { _, err := s.evaluator.Attribute(&r.Request, device, color); return err },
		"added device":      func() error { _, err := c.Add(&r.Request, s.inventory.Candidates[1]); return err },
		"alternative":       func() error { _, err := s.requests[0][1][0].decide(); return err },
	} {
		require.ErrorContains(t, evaluate(), "filter operation aborted: context canceled", what)
		require.ErrorIs(t, evaluate(), context.Canceled, what)
	}
	require.Zero(t, c.evaluations)
	require.Len(t, c.members, 1, "nothing has changed")
	require.Equal(t, 1, c.undecided)
}
