// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

// An evaluation that is too short to look at its context does not take place when the
// context has ended.
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
