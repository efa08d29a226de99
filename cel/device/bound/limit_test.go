// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

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
	require.True(t, analysis.Fits(300))
	require.False(t, analysis.Fits(1000))
	require.False(t, analysis.Fits(1<<40))

	compiled, err = environment(t).Compile(t.Context(), strings.Repeat(pairs+" && ", 50)+pairs)
	require.NoError(t, err)
	analysis = bound.Analyze(compiled, 4)
	require.True(t, analysis.Fits(64))
	require.True(t, analysis.Fits(300), "equal parts have one table")
}

// What takes the place of names and constants is limited: each name here stands for
// twice as much as the one before.
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
