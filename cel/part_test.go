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
	part, err := program.Part(program.AST().Expr())
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	require.Equal(t, types.True, part.Value(ctx, input(t, 1)))
	require.Equal(t, types.False, part.Value(ctx, input(t, 2)))

	errMoved := errors.New("the pod was moved")
	cancel(errMoved)
	failure, ok := part.Value(ctx, input(t, 1)).(*types.Err)
	require.True(t, ok)
	require.ErrorIs(t, failure, context.Canceled)
	require.ErrorIs(t, failure, errMoved)
}
