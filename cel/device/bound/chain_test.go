// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"testing"

	"pgregory.net/rapid"

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
