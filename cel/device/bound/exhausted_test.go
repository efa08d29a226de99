// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/device/bound"
)

// Wherever too much was looked at, nothing is told: not by what comes after it either,
// although it would be false.
func TestNothingIsToldWhenExhausted(t *testing.T) {
	const n = 100
	heavy := "devices.exists(d, d.y < 0)"
	for i := range 5 {
		heavy = fmt.Sprintf("devices.all(v%[1]d, devices.filter(w%[1]d, %[2]s || v%[1]d != w%[1]d).size() > 0 || %[2]s)", i, heavy)
	}
	e := environment(t)
	for _, construct := range []string{
		width("x") + " == 500",
		"devices.map(d, d.x).max() > 5000",
		"devices.map(d, d.x).sum() + devices.map(d, d.x).min() > 500000",
		"devices.map(d, d.x).distinct().size() + devices.map(d, d.x).min() == 5000",
		"devices.exists_one(d, !devices.exists(o, o.x == d.x + 500))",
		"devices.all(d, devices.filter(o, o.x > d.x).size() > 50)",
		"devices.exists(d, devices.all(o, d.x + o.x < 0))",
		"devices.filter(d, devices.filter(o, o.x > d.x).size() > 50).size() == 3",
		"devices.exists(d, d.x > 1000 && devices.size() > 1)",
	} {
		all := make([]values, n)
		for i := range all {
			all[i] = values{"x": i, "y": i}
		}
		alone := newSound(t, e, construct, 4, devicesWith(all...))
		require.NotEqual(t, bound.Open, alone.bounds(t).Bound(everyOther(n)), construct)
		for _, text := range []string{heavy + " && " + construct, construct + " && " + heavy, "(" + heavy + " || " + construct + ") && " + construct} {
			b := newSound(t, e, text, 4, devicesWith(all...)).bounds(t)
			require.Equal(t, bound.Open, b.Bound(everyOther(n)), text)
			require.True(t, b.Exhausted(), text)
			p := everyOther(n)
			p.Forced = of(n, 3)
			require.False(t, b.Infeasible(p, bound.Thorough), text)
			require.Equal(t, everyOther(n).Domain, p.Domain)
			require.True(t, p.Forced.IsEmpty())
			require.NoError(t, b.Err())
		}
	}
}

// TestBoundsEndWithTheContext: what an expression does for one device is not bounded by the number of devices.
func TestBoundsEndWithTheContext(t *testing.T) {
	const n = 100
	all := make([]values, n)
	for i := range all {
		all[i] = values{"x": i}
	}
	s := newSound(t, environment(t), "devices.filter(d, devices.filter(o, o.x > d.x).size() > 500).size() == 3", 4, devicesWith(all...))
	b := s.bounds(t)
	require.Equal(t, bound.False, b.Bound(everyOther(n)))
	require.False(t, b.Exhausted())

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// The tables are there: CEL is asked nothing.
	b = s.tables.NewBounds(ended, nil)
	require.Equal(t, bound.Open, b.Bound(everyOther(n)))
	require.NoError(t, b.Err())
	require.True(t, b.Exhausted())
}
