// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
)

// stretches are ways to write that the devices, each of which has the number x and is
// followed by the one with the number y, are one stretch.
var stretches = []string{
	"devices.exists_one(d, !devices.exists(o, o.x == d.y))",
	"devices.exists_one(d, devices.all(o, o.x != d.y))",
	"devices.filter(d, devices.exists(o, d.y == o.x)).size() == devices.size() - 1",
	"devices.filter(d, !devices.exists(o, o.x == d.y)).size() == 1",
	"devices.size() > 0 && (devices.exists_one(d, !devices.exists(o, o.x == d.y)) || devices.all(d, d.x > 3))",
}

// Rings with gaps, several of them, paths, and devices that follow several or none.
func TestStretches(t *testing.T) {
	e := environment(t)
	var formulas []formula
	for _, text := range stretches {
		formulas = append(formulas, compiled(t, e, text))
	}
	cases.CheckN(t, cases.Of(2000, 10_000), func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "devices")
		numbers := make([]int, n)
		for i := range numbers {
			numbers[i] = i
		}
		followers := rapid.Permutation(numbers).Draw(rt, "followers")
		var all []values
		for i, follower := range followers {
			switch rapid.IntRange(0, 9).Draw(rt, "kind") {
			case 0:
				follower = rapid.IntRange(0, n).Draw(rt, "follower")
			case 1:
				follower = -1
			}
			all = append(all, values{"x": i, "y": follower})
		}
		size := rapid.IntRange(1, min(n, 4)).Draw(rt, "size")
		soundOf(rapid.SampledFrom(formulas).Draw(rt, "expression"), size, devicesWith(all...)).checkAll(rt)
	})
}

// A ring of twelve without 0 and 6 has no stretch of six, and that is seen at once. With
// 0 there is one of eleven: of the six with 2 and 5 in it 3 and 4 are between them, and 1
// and 0 are all that is left before 6.
func TestStretchesOfARing(t *testing.T) {
	for _, text := range stretches[:4] {
		s := newSound(t, environment(t), text, 6, ring(12))
		require.True(t, s.bounds(t).Infeasible(s.partial(nil, []int{1, 2, 3, 4, 5, 7, 8, 9, 10, 11}), bound.Quick), text)

		p := s.partial([]int{2, 5}, []int{0, 1, 3, 4, 7, 8, 9, 10, 11})
		p.Forced = bitset.New(12)
		require.False(t, s.bounds(t).Infeasible(p, bound.Quick), text)
		require.Equal(t, of(12, 0, 1, 3, 4), p.Domain, text)
		require.Equal(t, p.Domain, p.Forced, text)

		require.True(t, s.bounds(t).Infeasible(s.partial([]int{2, 9}, []int{1, 3, 4, 7, 8, 10, 11}), bound.Quick), text)
	}
}

func ring(n int) []*device.Device {
	var all []values
	for i := range n {
		all = append(all, values{"x": i, "y": (i + 1) % n})
	}
	return devicesWith(all...)
}
