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
)

// relations are expressions with functions of package library, over all devices and over filtered devices.
var relations = []string{
	"devices.connected(d, o, d.x == o.y)",
	"devices.clique(d, o, d.x <= o.y + 1)",
	"devices.ring(d, o, d.x == o.y || d.y == o.y)",
	"devices.path(d, o, d.x == o.y)",
	"devices.filter(p, p.s == 'a').connected(d, o, d.x == o.y)",
	"devices.filter(p, p.s == 'a').clique(d, o, d.x == o.y)",
	"devices.filter(p, p.s == 'a').ring(d, o, d.x == o.y || d.y == o.y)",
	"devices.filter(p, p.s == 'a').path(d, o, d.x == o.y)",
	"devices.filter(p, p.s == 'a').paired(devices.filter(p, p.s == 'b'), d, o, d.x <= o.y)",
	"devices.filter(p, p.s == 'a').paired(devices.filter(p, p.x == 1), d, o, d.y <= o.y)",
	"devices.paired(devices, d, o, d.x <= o.y)",
	"devices.box(d, [d.x, d.y], [2, 2])",
	"devices.box(d, [d.x, d.y], [1, 3])",
	"devices.box(d, [d.x, d.y], [2, 3], [5, 0])",
	"devices.box(d, [d.x, d.y], [2, 3], [4, 4])",
	"devices.filter(p, p.s == 'a').box(d, [d.y], [2], [3])",
	"devices.segments(2, d, d.y)",
	"devices.segments(3, d, [d.y / 2, d.y % 2])",
	"devices.filter(p, p.s == 'a').segments(2, d, d.y)",
	"!devices.segments(2, d, d.y)",
	"[[1, 2], [2, 2]].exists(q, q[0] * q[1] == devices.size() && devices.box(d, [d.x, d.y], q, [5, 5]))",
	"!devices.connected(d, o, d.x == o.y)",
	"!devices.box(d, [d.x, d.y], [2, 2])",
	"devices.connected(d, o, d.x == o.y) || devices.clique(d, o, d.y == o.y)",
}

// TestRelationsAreUnderstood checks that relations have no open conjunct, for any names of the variables.
func TestRelationsAreUnderstood(t *testing.T) {
	e := environment(t)
	for _, text := range append([]string{
		"cel.bind(all, devices, all.ring(d, o, d.x == o.y))",
		"cel.bind(some, devices.filter(p, p.s == 'a'), some.paired(devices.filter(p, p.s == 'b'), d, o, d.x == o.y))",
		"devices.connected(devices, o, devices.x == o.x)",
		"devices.all(d, d.x == 1) && devices.path(d, o, true)",
	}, relations...) {
		if text == "devices.connected(devices, o, devices.x == o.x)" {
			text = "devices.connected(devices, o, devices.attributes['d'].x == o.x)"
		}
		a := bound.Analyze(compiled(t, e, text).Expression, 4)
		require.True(t, a.Understood(), text)
		require.Zero(t, a.Open(), text)
	}
	for _, text := range []string{
		"devices.all(p, devices.connected(d, o, d.x == o.x && p.x == o.x))",
		"devices.box(d, [d.x], [devices.size()])",
		"devices.box(d, [d.x], [1, 2])",
		"devices.box(d, [d.x], [1], [-1])",
		"devices.segments(devices.size(), d, d.x)",
		"devices.segments(0, d, d.x)",
		"devices.segments(2, d, d.x + devices.size())",
		"devices.segments(2, d, 1)",
		"devices.all(p, devices.segments(2, d, d.x + p.x))",
		"devices.map(d, d.x).ring(a, b, a == b)",
	} {
		require.NotZero(t, bound.Analyze(compiled(t, e, text).Expression, 4).Open(), text)
	}
}

// TestRelationsAreSound compares the bounds of partial sets with the results of all completions, and the devices that the
// propagator removes with the devices that probing removes.
func TestRelationsAreSound(t *testing.T) {
	e := environment(t)
	var compiledRelations []formula
	for _, text := range relations {
		compiledRelations = append(compiledRelations, compiled(t, e, text))
	}
	type tally struct{ infeasible, found, removable, removed, probed int }
	tallies := map[string]*tally{}
	cases.CheckN(t, cases.Of(400, 2000), func(rt *rapid.T) {
		f := rapid.SampledFrom(compiledRelations).Draw(rt, "relation")
		n := rapid.IntRange(2, 7).Draw(rt, "devices")
		s := soundOf(f, rapid.IntRange(1, min(n, 5)).Draw(rt, "size"), drawDevices(rt, n))
		bounds := s.bounds(rt)
		of := tallies[f.text]
		if of == nil {
			of = &tally{}
			tallies[f.text] = of
		}
		for range 4 {
			p := drawPartial(rt, s)
			is, propagated := s.check(rt, bounds, p, bound.Quick)
			alive := bitset.New(n)
			some, fails := false, false
			completions(p, n, 0, func(set bitset.Set) {
				outcome := s.outcome(rt, set)
				if outcome != bound.False {
					some = true
					alive.Join(set)
				}
				fails = fails || outcome == bound.Error
			})
			if fails {
				continue
			}
			if !some {
				of.infeasible++
				if is {
					of.found++
				}
				continue
			}
			for i := range p.Domain.All() {
				if p.Left == 0 {
					break
				}
				if alive.Has(i) {
					continue
				}
				of.removable++
				if !propagated.Domain.Has(i) {
					of.removed++
				}
				chosen := clone(p)
				chosen.Chosen.Add(i)
				chosen.Domain.Remove(i)
				chosen.Left--
				if bounds.Bound(chosen) == bound.False {
					of.probed++
				}
			}
		}
	})
	total := tally{}
	for _, text := range relations {
		of := tallies[text]
		if of == nil {
			continue
		}
		t.Logf("%s: of %d infeasible sets %d found; of %d devices in no completion %d removed, %d by probing", text, of.infeasible, of.found, of.removable, of.removed, of.probed)
		total.infeasible, total.found = total.infeasible+of.infeasible, total.found+of.found
		total.removed, total.probed = total.removed+of.removed, total.probed+of.probed
	}
	require.Greater(t, total.found, total.infeasible*9/10)
	require.Greater(t, total.removed, total.probed*7/10)
}

// TestRelationOfManyDevices checks that the search for a ring ends in bounded time if there is no ring.
func TestRelationOfManyDevices(t *testing.T) {
	var all []values
	for i := range 32 {
		all = append(all, values{"x": i % 2, "y": i})
	}
	s := newSound(t, environment(t), "devices.ring(d, o, d.x != o.x)", 15, devicesWith(all...))
	bounds := s.bounds(t)
	bounds.Infeasible(s.partial(nil, upTo(32)), bound.Thorough)
	require.False(t, bounds.Exhausted())
	require.NoError(t, bounds.Err())
}

// stretches are spellings of the condition that the devices form one stretch, a run of successive devices. A device has the
// number x, and its successor has the number y.
var stretches = []string{
	"devices.exists_one(d, !devices.exists(o, o.x == d.y))",
	"devices.exists_one(d, devices.all(o, o.x != d.y))",
	"devices.filter(d, devices.exists(o, d.y == o.x)).size() == devices.size() - 1",
	"devices.filter(d, !devices.exists(o, o.x == d.y)).size() == 1",
	"devices.size() > 0 && (devices.exists_one(d, !devices.exists(o, o.x == d.y)) || devices.all(d, d.x > 3))",
}

// TestStretches covers rings with gaps, several rings, paths, and devices with several predecessors or without one.
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
