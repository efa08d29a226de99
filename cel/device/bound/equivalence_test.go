// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomexpr"
)

// TestEqualitiesInEqualities has conditions that are compared with each other, in any nesting.
func TestEqualitiesInEqualities(t *testing.T) {
	var seen statistics
	var equality func(t *rapid.T, depth int) string
	equality = func(t *rapid.T, depth int) string {
		if depth == 0 || rapid.IntRange(0, 3).Draw(t, "deeper") == 0 {
			return "(" + randomexpr.Condition(t, randomAttributes) + ")"
		}
		return "(" + equality(t, depth-1) + rapid.SampledFrom([]string{" == ", " != "}).Draw(t, "relation") + equality(t, depth-1) + ")"
	}
	cases.CheckN(t, cases.Of(300, 5_000), soundnessOf(t, &seen, func(t *rapid.T) string { return equality(t, 3) }))
	t.Logf("%+v", seen)
	require.Positive(t, seen.decided)
	require.Positive(t, seen.infeasible)
}

// TestWhatIsNotReadIsOpen: wherever reading ends, what is said is sound.
func TestWhatIsNotReadIsOpen(t *testing.T) {
	var seen statistics
	sound := soundness(t, &seen)
	cases.CheckN(t, cases.Of(500, 5_000), func(t *rapid.T) {
		defer bound.ReadAtMost(rapid.IntRange(1, 40).Draw(t, "readings"))()
		sound(t)
	})
	t.Logf("%+v", seen)
	require.Positive(t, seen.infeasible)
}

// TestChainsOfEqualities: each side of an equality is written out twice at most, however many there are.
func TestChainsOfEqualities(t *testing.T) {
	e := environment(t)
	all := devicesWith(values{"y": 0}, values{"y": 1}, values{"y": 2})
	condition := "devices.all(d, d.attributes['d'].y == 0)"
	for name, text := range map[string]string{
		"in a row":        condition + strings.Repeat(" == "+condition, 60),
		"from the right":  strings.Repeat(condition+" == (", 40) + condition + strings.Repeat(")", 40),
		"of lists":        strings.Repeat("[", 20) + condition + strings.Repeat("] == [true]", 20),
		"of counts":       counted(11) + " == 1",
		"in a quantifier": strings.Repeat("devices.all(d, d.attributes['d'].y < 3 && "+condition+" == ", 20) + condition + strings.Repeat(")", 20),
	} {
		t.Run(name, func(t *testing.T) {
			expression, err := e.Compile(t.Context(), text)
			require.NoError(t, err)
			bounds := bound.Analyze(expression, 2).Tabulate(all).NewBounds(t.Context(), nil)
			got := bounds.Bound(bound.Partial{Chosen: of(3, 1, 2), Domain: of(3), Forced: of(3)})
			satisfied, err := expression.Satisfied(t.Context(), all[1:], nil)
			require.NoError(t, err)
			want := bound.False
			if satisfied {
				want = bound.True
			}
			require.NotZero(t, got&want)
		})
	}
}

// counted has in each of its levels the next one once, and is read several times.
func counted(levels int) string {
	text := "devices.size()"
	for level := range levels {
		text = fmt.Sprintf("(devices.map(d%d, %s).distinct().size() == 1 ? 1 : 2)", level, text)
	}
	return text
}

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
