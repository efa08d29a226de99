// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomexpr"
)

// TestCompleteSets: a complete set that is surely true by its bounds is true by CEL, and one
// that is surely false is false. Those are accepted and refused without an evaluation.
func TestCompleteSets(t *testing.T) {
	e := environment(t)
	sets, proven, refuted, satisfied := 0, 0, 0, 0
	cases.CheckN(t, cases.Of(2000, 10_000), func(rt *rapid.T) {
		text := randomexpr.Condition(rt, randomAttributes)
		expression, err := e.Compile(rt.Context(), text)
		if err != nil {
			return
		}
		size := rapid.IntRange(1, 3).Draw(rt, "size")
		analysis := bound.Analyze(expression, size)
		s := soundOf(formula{text, expression}, size, devices(rt, rapid.IntRange(size, 4).Draw(rt, "devices")))
		s.tables = analysis.Tabulate(s.all)
		bounds := s.bounds(rt)
		completions(s.partial(nil, upTo(len(s.all))), len(s.all), 0, func(set bitset.Set) {
			sets++
			is := s.outcome(rt, set)
			if is == bound.True {
				satisfied++
			}
			may := bounds.Bound(bound.Partial{Chosen: set, Domain: bitset.New(len(s.all))})
			require.Zero(rt, is&^may, "%s\n%b is %s, bounds say %s", text, set, is, may)
			switch may {
			case bound.True:
				proven++
				require.True(rt, bounds.MayProve(), text)
			case bound.False:
				refuted++
			}
		})
	})
	t.Logf("%d sets, %d satisfied, %d proven, %d refuted", sets, satisfied, proven, refuted)
	require.Greater(t, proven, satisfied/2)
	require.Greater(t, refuted, sets/4)
}
