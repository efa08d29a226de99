// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/meter"
)

// watchAll plans an expression with a watch of each part of some kind.
func watchAll(t *testing.T, text string, is ast.ExprKind) ([]meter.Watched, error) {
	t.Helper()
	in := clusters(t)
	checked, issues := in.env.Compile(text)
	require.NoError(t, issues.Err())
	var seen []meter.Watched
	watches := map[int64]meter.Watch{}
	ast.PostOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(part ast.Expr) {
		if part.Kind() == is {
			watches[part.ID()] = func(w meter.Watched) { seen = append(seen, w) }
		}
	}))
	planner, err := meter.NewPlanner(in.env, in.config)
	require.NoError(t, err)
	program, err := planner.PlanWatched(checked.NativeRep(), true, watches)
	if err != nil {
		return nil, err
	}
	activation, err := celgo.NewActivation(input())
	require.NoError(t, err)
	_, _, _ = program.Eval(t.Context(), activation, meter.Limits{})
	for i := range seen {
		require.Same(t, activation, seen[i].Input)
		seen[i].Input = nil
	}
	return seen, nil
}

func TestWatchesAreToldOfCalls(t *testing.T) {
	seen, err := watchAll(t, `size(text.substring(1, 3)) == n - 5`, ast.CallKind)
	require.NoError(t, err)
	require.Equal(t, []meter.Watched{
		{First: types.String(input()["text"].(string)), Second: types.Int(1), Result: types.String("om")},
		{First: types.String("om"), Result: types.Int(2)},
		{First: types.Int(7), Second: types.Int(5), Result: types.Int(2)},
		{First: types.Int(2), Second: types.Int(2), Result: types.True},
	}, seen)
}

// A call that is not made is not told of; one that fails is.
func TestWatchesOfFailures(t *testing.T) {
	seen, err := watchAll(t, `m.missing + 1 == 2`, ast.CallKind)
	require.NoError(t, err)
	require.Empty(t, seen)
	seen, err = watchAll(t, `n / (n - 7) != 1`, ast.CallKind)
	require.NoError(t, err)
	require.Len(t, seen, 2)
	require.True(t, types.IsError(seen[1].Result))
}

func TestWhatIsNoCallCannotBeWatched(t *testing.T) {
	_, err := watchAll(t, `n == 7`, ast.IdentKind)
	require.ErrorContains(t, err, "1 of 1 calls can't be watched")
	_, err = watchAll(t, `n == 7 && n == 8`, ast.CallKind)
	require.ErrorContains(t, err, "1 of 3 calls can't be watched")
}
