// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomexpr"
)

// TestLeadingConjuncts checks that bounds exist for the conjuncts before a costly or aborting conjunct.
func TestLeadingConjuncts(t *testing.T) {
	const (
		box    = "devices.map(d, d.x).max() - devices.map(d, d.x).min() == 1"
		costly = "lists.range(900).all(n, lists.range(900).all(m, n + m >= 0))"
		aborts = "[devices.map(d, [d.x])].flatten().size() > 0"
	)
	e := environment(t)
	numbers := ranked(0, 1, 2, 3, 4, 5)
	for _, test := range []struct {
		text   string
		whole  bool
		prunes bool
	}{
		{box, true, true},
		{box + " && " + costly, false, true},
		{box + " && " + aborts, false, true},
		{box + " && devices.exists(d, d.x == 1) && " + costly + " && " + box, false, true},
		{costly + " && " + box, false, false},
		{aborts + " && " + box, false, false},
		{costly, false, false},
		{box + " || " + costly, false, false},
	} {
		analysis := bound.AnalyzeAscending(compiled(t, e, test.text).Expression, 2)
		require.Equal(t, test.whole, analysis.Affordable(numbers), test.text)
		leading := analysis.Leading(numbers)
		require.Equal(t, test.prunes, leading != nil, test.text)
		if leading == nil {
			continue
		}
		require.Equal(t, test.whole, leading == analysis, test.text)
		bounds := leading.Tabulate(numbers).NewBounds(t.Context(), nil)
		require.Equal(t, test.whole, bounds.MayProve())
		p := bound.Partial{Chosen: of(6, 0), Domain: of(6, 1, 2, 3, 4, 5), Left: 1}
		require.False(t, bounds.Infeasible(p, bound.Thorough), test.text)
		require.Equal(t, []int{1}, positions(p.Domain), test.text)
		apart := bound.Partial{Chosen: of(6, 0, 5), Domain: bitset.New(6)}
		require.Equal(t, bound.False, bounds.Bound(apart), test.text)
		beside := bound.Partial{Chosen: of(6, 0, 1), Domain: bitset.New(6)}
		require.True(t, bounds.Bound(beside)&bound.True != 0, test.text)
		require.Equal(t, test.whole, bounds.Bound(beside) == bound.True, test.text)
	}
}

// TestLeadingIsSound checks that Infeasible rejects no set whose evaluation would fail at the cost limit, even for very low
// limits.
func TestLeadingIsSound(t *testing.T) {
	var environments []*device.Environment
	for _, limit := range []uint64{50, 150, 500, 2000} {
		e, err := device.NewEnvironment(cel.Config{CostLimit: limit})
		require.NoError(t, err)
		environments = append(environments, e)
	}
	read, part, ended := 0, 0, 0
	cases.CheckN(t, cases.Of(2000, 10_000), func(rt *rapid.T) {
		var conjuncts []string
		for range rapid.IntRange(2, 5).Draw(rt, "conjuncts") {
			conjuncts = append(conjuncts, "("+randomexpr.Condition(rt, randomAttributes)+")")
		}
		text := strings.Join(conjuncts, " && ")
		expression, err := rapid.SampledFrom(environments).Draw(rt, "limit").Compile(rt.Context(), text)
		if err != nil {
			return
		}
		size := rapid.IntRange(1, 3).Draw(rt, "size")
		all := devices(rt, rapid.IntRange(size, 5).Draw(rt, "devices"))
		analysis := bound.AnalyzeAscending(expression, size)
		leading := analysis.Leading(all)
		if leading == nil {
			return
		}
		read++
		if leading != analysis {
			part++
		}
		s := &sound{formula: formula{text, expression}, all: all, size: size, tables: leading.Tabulate(all), outcomes: map[uint64]bound.Outcome{}}
		bounds := s.bounds(rt)
		for range 4 {
			s.check(rt, bounds, drawPartial(rt, s), rapid.SampledFrom([]bound.Effort{bound.Quick, bound.Thorough}).Draw(rt, "effort"))
		}
		for _, outcome := range s.outcomes {
			if outcome == bound.Error {
				ended++
			}
		}
	})
	t.Logf("%d expressions, of %d only the first conjuncts; %d evaluations failed", read, part, ended)
	require.Greater(t, part, read/10)
	require.Positive(t, ended)
}

func everyOther(n int) bound.Partial {
	p := bound.Partial{Chosen: of(n, 0), Domain: bitset.New(n), Left: 3}
	for i := 1; i < n; i++ {
		p.Domain.Add(i)
	}
	return p
}

func TestTablesOfManyDevicesAreNotMade(t *testing.T) {
	pairs := "devices.all(d, devices.exists(o, d.attributes['d'].y < o.attributes['d'].y))"
	compiled, err := environment(t).Compile(t.Context(), pairs)
	require.NoError(t, err)
	analysis := bound.Analyze(compiled, 4)
	require.True(t, analysis.Fits(64))
	require.True(t, analysis.Fits(10000), "pairs are made as they are asked for")
	require.False(t, analysis.Fits(1<<40))

	compiled, err = environment(t).Compile(t.Context(), strings.Repeat(pairs+" && ", 50)+pairs)
	require.NoError(t, err)
	analysis = bound.Analyze(compiled, 4)
	require.True(t, analysis.Fits(64))
	require.True(t, analysis.Fits(300), "equal parts have one table")
}

// TestLargeExpressionsAreLeftToCEL checks the limit for copies of bound values. Each name here doubles the size of the previous
// one.
func TestLargeExpressionsAreLeftToCEL(t *testing.T) {
	bindings := func(n int) string {
		text := fmt.Sprintf("a%d == 0", n)
		for i := n; i > 0; i-- {
			text = fmt.Sprintf("cel.bind(a%d, a%d + a%d, %s)", i, i-1, i-1, text)
		}
		return "cel.bind(a0, devices.map(d, d.attributes['d'].y).max(), " + text + ")"
	}
	constants := func(n int) string {
		return "[0" + strings.Repeat(", 0", n-1) + "].all(n, devices.exists(d, d.attributes['d'].y == n))"
	}
	for text, want := range map[string]bool{
		bindings(4): true, bindings(40): false,
		constants(100): true, constants(2000): false,
	} {
		compiled, err := environment(t).Compile(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, want, bound.Analyze(compiled, 3).Understood(), text)
	}
}
