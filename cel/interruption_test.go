// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

// during is an activation that calls stop when the evaluation reads a variable from it.
type during struct {
	celgo.Activation
	stop func()
}

func (d during) ResolveName(name string) (any, bool) {
	d.stop()
	return d.Activation.ResolveName(name)
}

func TestEvaluationIsInterrupted(t *testing.T) {
	errMoved := errors.New("the pod was moved")
	for name, test := range map[string]struct {
		// context returns a context and a function that ends it during the evaluation.
		context func(context.Context) (context.Context, func())
		want    []error
		message string
	}{
		"cancelled": {
			context: func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) },
			want:    []error{context.Canceled},
			message: "evaluation interrupted: context canceled",
		},
		"cancelled with cause": {
			context: func(ctx context.Context) (context.Context, func()) {
				ctx, cancel := context.WithCancelCause(ctx)
				return ctx, func() { cancel(errMoved) }
			},
			want:    []error{context.Canceled, errMoved},
			message: "evaluation interrupted: context canceled: the pod was moved",
		},
		"deadline": {
			context: func(ctx context.Context) (context.Context, func()) {
				ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
				return ctx, func() { <-ctx.Done(); cancel() }
			},
			want:    []error{context.DeadlineExceeded},
			message: "evaluation interrupted: context deadline exceeded",
		},
		"deadline with cause": {
			context: func(ctx context.Context) (context.Context, func()) {
				ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Millisecond, errMoved)
				return ctx, func() { <-ctx.Done(); cancel() }
			},
			want:    []error{context.DeadlineExceeded, errMoved},
			message: "evaluation interrupted: context deadline exceeded: the pod was moved",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := test.context(t.Context())
			budget := cel.NewBudget(1_000_000)
			program := compile(t, newEnvironment(t, cel.Config{}), cubic)
			_, err := program.Evaluate(ctx, during{input(t, 1), stop}, budget)
			failure := requireError(t, err, cel.ReasonInterrupted)
			require.ErrorIs(t, err, ctx.Err())
			for _, want := range test.want {
				require.ErrorIs(t, err, want)
			}
			require.EqualError(t, err, test.message)
			require.Equal(t, cubic, failure.Expression)
			require.NotZero(t, budget.Spent())
		})
	}
}

// TestCheapEvaluationOutlivesItsContext tests that a short evaluation returns its result although the context has ended.
func TestCheapEvaluationOutlivesItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	verdict, err := compile(t, newEnvironment(t, cel.Config{}), "n == 1").Evaluate(ctx, input(t, 1), nil)
	require.NoError(t, err)
	require.True(t, verdict)
}

func TestCostLimitIsNoInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	program := compile(t, newEnvironment(t, cel.Config{CostLimit: 10}), cubic)
	_, err := program.Evaluate(ctx, input(t, 1), nil)
	_ = requireError(t, err, cel.ReasonCostLimit)
	require.NotErrorIs(t, err, context.Canceled)
}

func TestContextError(t *testing.T) {
	require.NoError(t, cel.ContextError(t.Context()))

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, context.Canceled, cel.ContextError(cancelled))

	cause := errors.New("cause")
	caused, cancelCause := context.WithCancelCause(t.Context())
	cancelCause(cause)
	require.ErrorIs(t, cel.ContextError(caused), cause)
	require.ErrorIs(t, cel.ContextError(caused), context.Canceled)
}

// TestPartAfterItsContext tests that Part.Value evaluates nothing after the context has ended. It must check the context first,
// because evaluating a part is too short to check it.
func TestPartAfterItsContext(t *testing.T) {
	program := compile(t, newEnvironment(t, cel.Config{}), "n == 1")
	part, err := program.Part(program.AST(), program.AST().Expr())
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	budget := cel.NewBudget(1_000_000)
	value, err := part.Value(ctx, input(t, 1), budget)
	require.NoError(t, err)
	require.Equal(t, types.True, value)
	cost := budget.Spent()
	require.NotZero(t, cost)

	errMoved := errors.New("the pod was moved")
	cancel(errMoved)
	_, err = part.Value(ctx, input(t, 1), budget)
	_ = requireError(t, err, cel.ReasonInterrupted)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errMoved)
	require.Equal(t, cost, budget.Spent())
}
