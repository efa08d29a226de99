// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/device/bound"
)

// TestPatternsThatFail has completions with the pattern and completions that fail. The bounds must include both results.
func TestPatternsThatFail(t *testing.T) {
	const chain = "devices.exists(d, devices.exists(o, devices.exists(p, d.x == o.y && o.x == p.y)))"
	all := devicesWith(values{"y": 0, "x": 1}, values{"y": 1, "x": 2}, values{"y": 2, "x": 0}, values{"y": 4, "x": 9}, values{"y": 5})
	e := environment(t)
	for text, may := range map[string]bound.Outcome{
		chain: bound.Open,
		"(" + chain + ") ? devices.all(d, d.y > 9) : devices.all(d, d.y > 8)": bound.False | bound.Error,
		"((" + chain + ") ? 1 : 2) == 3":                                      bound.False | bound.Error,
		"!(" + chain + ")":                                                    bound.Open,
	} {
		s := newSound(t, e, text, 3, all)
		require.Equal(t, may, s.bounds(t).Bound(s.partial(nil, upTo(len(all)))), text)
		s.checkAll(t)
	}
	// Now the failing device is not in the partial set.
	s := newSound(t, e, chain, 3, all)
	require.Equal(t, bound.True|bound.False, s.bounds(t).Bound(s.partial([]int{0}, []int{1, 2, 3})))
	require.Equal(t, bound.True, s.bounds(t).Bound(s.partial([]int{0, 1, 2}, nil)))
	require.Equal(t, bound.False, s.bounds(t).Bound(s.partial([]int{0, 3}, []int{1})))
}
