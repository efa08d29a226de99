// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"
)

// evaluateZoned evaluates an expression over the variable zone.
func evaluateZoned(t *testing.T, text, zone string) (ref.Val, Expense, error) {
	t.Helper()
	env, err := celgo.NewEnv(celgo.Variable("zone", celgo.StringType))
	require.NoError(t, err)
	checked, issues := env.Compile(text)
	require.NoError(t, issues.Err())
	planner, err := NewPlanner(env, Config{})
	require.NoError(t, err)
	program, err := planner.Plan(checked.NativeRep(), true)
	require.NoError(t, err)
	input, err := celgo.NewActivation(map[string]any{"zone": zone})
	require.NoError(t, err)
	value, expense, err := program.Eval(t.Context(), input, Limits{})
	want, _, wantErr := mustProgram(t, env, checked).Eval(map[string]any{"zone": zone})
	require.Equal(t, wantErr, err)
	if wantErr == nil {
		require.Equal(t, types.True, want.Equal(value), "%s: %v and not %v", zone, value, want)
	}
	return value, expense, err
}

func mustProgram(t *testing.T, env *celgo.Env, checked *celgo.Ast) celgo.Program {
	t.Helper()
	program, err := env.Program(checked)
	require.NoError(t, err)
	return program
}

// Zones that are kept are those that CEL reads from files, and free.
func TestKeptZones(t *testing.T) {
	const read = 100_000
	for zone, free := range map[string]bool{
		"Europe/Berlin": true, "America/Argentina/Buenos_Aires": true, "Etc/GMT+5": true, "UTC": true, "": true, "+05:30": true,
		"Europe//Berlin": false, "./Europe/Berlin": false, "No/Where": false, "Europe/Berlin/": false, strings.Repeat("Europe/", 20) + "Berlin": false,
	} {
		for _, function := range []string{"getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds"} {
			_, expense, _ := evaluateZoned(t, "timestamp('2026-12-31T23:45:59.123Z')."+function+"(zone)", zone)
			// The timestamp is a constant.
			if free {
				require.Zero(t, expense.Load.Nanoseconds, zone)
			} else {
				require.GreaterOrEqual(t, expense.Load.Nanoseconds, float64(read), zone)
			}
		}
	}
}

// What names a zone in any number of ways fills no memory.
func TestOnlyPlainZonesAreKept(t *testing.T) {
	for _, name := range []string{"Europe//Berlin", "./Europe/Berlin", "Europe/./Berlin", "No/Where", ""} {
		_, _ = Zone(name)
		require.NotContains(t, zones.known, name)
	}
	loaded, err := Zone("Europe/Berlin")
	require.NoError(t, err)
	again, err := Zone("Europe/Berlin")
	require.NoError(t, err)
	require.Same(t, loaded, again)
}
