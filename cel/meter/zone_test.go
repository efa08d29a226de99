// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"math"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"
)

// evaluateZoned evaluates an expression over the variable zone, and requires the same result as cel-go's.
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

// TestKeptZones tests that a call with a cached time zone has no load, and a call with another time zone has one. The results
// must equal the results of cel-go.
func TestKeptZones(t *testing.T) {
	const read = 100_000
	for zone, free := range map[string]bool{
		"Europe/Berlin": true, "America/Argentina/Buenos_Aires": true, "Etc/GMT+5": true, "UTC": true, "": true, "+05:30": true,
		"Europe//Berlin": false, "./Europe/Berlin": false, "No/Where": false, "Europe/Berlin/": false, strings.Repeat("Europe/", 20) + "Berlin": false,
	} {
		for _, function := range []string{"getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds"} {
			_, expense, _ := evaluateZoned(t, "timestamp('2026-12-31T23:45:59.123Z')."+function+"(zone)", zone)
			// The timestamp is a constant, so only the zone can have a load.
			if free {
				require.Zero(t, expense.Load.Nanoseconds, zone)
			} else {
				require.GreaterOrEqual(t, expense.Load.Nanoseconds, float64(read), zone)
			}
		}
	}
}

// TestOnlyPlainZonesAreCached tests that the variants of a zone's name are not cached.
func TestOnlyPlainZonesAreCached(t *testing.T) {
	for _, name := range []string{"Europe//Berlin", "./Europe/Berlin", "Europe/./Berlin", "No/Where", ""} {
		_, _ = loadZone(name)
		require.NotContains(t, zones.known, name)
	}
	loaded, err := loadZone("Europe/Berlin")
	require.NoError(t, err)
	again, err := loadZone("Europe/Berlin")
	require.NoError(t, err)
	require.Same(t, loaded, again)
}

// TestPatternsThatTakeLongToParse tests that regular expressions are rejected before parsing if Go's parser would need between
// a tenth of a second and minutes.
func TestPatternsThatTakeLongToParse(t *testing.T) {
	for name, text := range map[string]string{
		"begin alike":            strings.Repeat(strings.Repeat(".", 4900)+"b|", 2),
		"begin alike, in groups": "(" + strings.Repeat("(?:"+strings.Repeat(".a", 1000)+"|", 4) + "))))",
		"counted":                strings.Repeat(strings.Repeat("a{9}", 1000)+"b|", 2),
		"letters of all scripts": "(?i)" + strings.Repeat(`[B-𞥂]`, 10),
		"in one class":           "(?i)[" + strings.Repeat(`B-𞥂`, 10) + "]",
		"by their numbers":       "(?i)" + strings.Repeat(`[\x{41}-\x{1e900}]`, 10),
		"a flag among others":    "(?s-m:a)(?Us-i:" + strings.Repeat(`[B-𞥂]`, 10) + ")",
		"no such number":         "(?i)" + strings.Repeat(`[\x{41}-\x{zz}]`, 10),
		"classes":                "(?i)" + strings.Repeat(`[\PL]`, 60),
		"groups in groups":       strings.Repeat("(?:", 90) + strings.Repeat("^a", 5000) + strings.Repeat(")", 90),
		"quoted bracket":         `\Q[\E` + strings.Repeat(strings.Repeat(".", 4900)+"b|", 2),
	} {
		_, err := PatternOf(text)
		_, tooLarge := errors.AsType[*PatternError](err)
		require.True(t, tooLarge, "%s: %v", name, err)
	}
}

// TestPatternsThatPeopleWrite tests that realistic regular expressions are far below the limit.
func TestPatternsThatPeopleWrite(t *testing.T) {
	names := make([]string, 300)
	for i := range names {
		names[i] = `node-` + strings.Repeat("x", 20) + `\.example\.com`
	}
	for _, text := range []string{
		`^(trn1|trn2|inf2)\.[0-9]*xlarge$`, `(?i)^nvidia[- ](a|h|b)\d{2,3}.*$`, `(?i)[à-ÿa-z0-9_-]+`,
		`^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*example\.com$`, `\p{L}[\p{L}\p{N}_-]*`, `(?i)\p{Greek}+`,
		`^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}`, strings.Join(names[:60], "|"), strings.Repeat("long literal text ", 500),
	} {
		of, err := PatternOf(text)
		require.NoError(t, err, text)
		require.Less(t, of.Parsing, MaxPatternParsing/1.0, text)
	}
}

// TestPatternsWithoutLimitHaveNone tests that the load of a pattern that is too large is noLimit and not NaN. Comparisons with
// NaN are false, so limits would not apply to it.
func TestPatternsWithoutLimitHaveNone(t *testing.T) {
	for _, function := range []string{"matches", "find", "findAll"} {
		for _, groups := range []float64{0, 1, maxGroups} {
			load := LoadOf(function, Call{Pattern: Pattern{Instructions: noLimit, Groups: groups}})
			require.GreaterOrEqual(t, load.Nanoseconds, float64(noLimit), function)
			require.GreaterOrEqual(t, load.Bytes, float64(noLimit), function)
		}
	}
}

// TestLoadsAreNumbers tests that loads are numbers, even for operands of unlimited size.
func TestLoadsAreNumbers(t *testing.T) {
	sizes := []float64{0, 1, math.Inf(1)}
	for function := range loads {
		for _, first := range sizes {
			for _, second := range sizes {
				for _, result := range sizes {
					call := Call{First: Operand{Size: first, Deep: first}, Second: Operand{Size: second, Deep: second}, Result: result}
					load := LoadOf(function, call)
					require.GreaterOrEqual(t, load.Nanoseconds, 0.0, "%s: %+v", function, call)
					require.GreaterOrEqual(t, load.Bytes, 0.0, "%s: %+v", function, call)
				}
			}
		}
	}
}
