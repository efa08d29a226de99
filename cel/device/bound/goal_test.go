// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
)

// goals are expressions of preferences. x is an int attribute of each device.
var goals = []string{
	"7",
	"devices.map(d, d.x).sum()",
	"0 - devices.map(d, d.x).distinct().size()",
	"4 - devices.filter(d, d.x > 2).size()",
	"devices.map(d, d.x).min()",
	"devices.map(d, d.x).max() - devices.map(d, d.x).min()",
	"devices.exists(d, d.x == 3) ? 1 : 0",
	"devices.all(d, d.x < 3) ? 0 : 1",
	"devices.exists(d, d.x == 3) ? devices.size() : devices.map(d, d.x).max()",
}

// TestGoalsAreSound checks that no completion has a greater value than Most, and that Exceed removes no device of a better
// completion.
func TestGoalsAreSound(t *testing.T) {
	e := environment(t)
	expressions := map[string]*device.Expression{}
	for _, text := range goals {
		expression, err := e.CompileInt(t.Context(), spelled(text))
		require.NoError(t, err)
		expressions[text] = expression
	}
	told, infeasible := 0, 0
	cases.CheckN(t, cases.Of(1000, 10_000), func(t *rapid.T) {
		text := rapid.SampledFrom(goals).Draw(t, "goal")
		var all []values
		for range rapid.IntRange(2, 6).Draw(t, "devices") {
			all = append(all, values{"x": rapid.IntRange(0, 4).Draw(t, "x")})
		}
		s := &sound{all: devicesWith(all...), size: rapid.IntRange(1, len(all)).Draw(t, "size")}
		analysis := bound.AnalyzeGoal(expressions[text], s.size, rapid.Bool().Draw(t, "ascending"))
		require.True(t, analysis.Understood() && analysis.Fits(len(all)))
		bounds := analysis.Tabulate(s.all).NewBounds(t.Context(), nil)
		p, floor := drawPartial(t, s), rapid.Int64Range(-6, 12).Draw(t, "floor")
		most := bounds.Most(clone(p))
		bounds.Exceed(floor)
		propagated := clone(p)
		none := bounds.Infeasible(propagated, bound.Thorough)
		if most < math.MaxInt64 {
			told++
		}
		if none {
			infeasible++
		}
		completions(p, len(s.all), 0, func(set bitset.Set) {
			var members []*device.Device
			for i := range set.All() {
				members = append(members, s.all[i])
			}
			value, err := expressions[text].Value(t.Context(), members, nil)
			require.NoError(t, err)
			require.LessOrEqual(t, value, most, "%s: %b", text, set)
			if value > floor {
				require.False(t, none, "%s: %b", text, set)
				for i := range set.All() {
					require.True(t, p.Chosen.Has(i) || propagated.Domain.Has(i), "%s: %b without %d", text, set, i)
				}
			}
		})
	})
	require.Positive(t, told)
	require.Positive(t, infeasible)
}
