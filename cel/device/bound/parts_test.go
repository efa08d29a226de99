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

// TestParts compares the bounds of searches with parts with all completions that have the right number of devices of each part.
func TestParts(t *testing.T) {
	e := environment(t)
	infeasible, removed := 0, 0
	cases.CheckN(t, cases.Of(100, 5000), func(t *rapid.T) {
		count, parts := rapid.IntRange(3, 8).Draw(t, "devices"), rapid.IntRange(1, 3).Draw(t, "parts")
		var all []values
		sets := make([]bitset.Set, parts)
		for i := range sets {
			sets[i] = bitset.New(count)
		}
		for i := range count {
			part := rapid.IntRange(0, parts-1).Draw(t, "part")
			sets[part].Add(i)
			of := values{"y": rapid.IntRange(0, 2).Draw(t, "y"), "s": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "s"), "z": part}
			if rapid.IntRange(0, 9).Draw(t, "has x") > 0 {
				of["x"] = rapid.IntRange(0, 3).Draw(t, "x")
			}
			all = append(all, of)
		}
		var divided []bound.Part
		size := 0
		for _, set := range sets {
			n := rapid.IntRange(0, set.Count()).Draw(t, "count")
			divided = append(divided, bound.Part{Of: set, Count: n})
			size += n
		}
		if size == 0 {
			return
		}
		text := drawOfParts(t)
		expression, err := e.Compile(t.Context(), spelled(text))
		if err != nil {
			return
		}
		s := soundOf(formula{text, expression}, size, devicesWith(all...))
		bounds := s.bounds(t)
		bounds.Divide(divided)
		isDivided := func(set bitset.Set) bool {
			for _, part := range divided {
				if set.CountAnd(part.Of) != part.Count {
					return false
				}
			}
			return true
		}
		for range 20 {
			var chosen, possible []int
			for i := range count {
				switch rapid.IntRange(0, 3).Draw(t, "is") {
				case 0:
				case 1:
					if len(chosen) < size {
						chosen = append(chosen, i)
					}
				default:
					possible = append(possible, i)
				}
			}
			p := s.partial(chosen, possible)
			for _, effort := range []bound.Effort{bound.Quick, bound.Thorough} {
				may, propagated := bounds.Bound(clone(p)), clone(p)
				is := bounds.Infeasible(propagated, effort)
				completions(p, count, 0, func(set bitset.Set) {
					if !isDivided(set) {
						return
					}
					outcome := s.outcome(t, set)
					about := "%s: parts %v, chosen %v of %v, left %d, set %v: %v"
					with := []any{text, divided, chosen, possible, p.Left, positions(set), outcome}
					require.Zerof(t, outcome&^may, "wrong bound: "+about, with...)
					if outcome == bound.False {
						return
					}
					require.Falsef(t, is, "not infeasible: "+about, with...)
					joined := append(bitset.Set{}, propagated.Chosen...)
					joined.Join(propagated.Domain)
					require.Truef(t, set.IsWithin(joined), "removed wrongly: "+about, with...)
					require.Truef(t, propagated.Forced.IsWithin(set), "required wrongly: "+about, with...)
				})
				if is {
					infeasible++
				} else if propagated.Domain.Count() < p.Domain.Count() {
					removed++
				}
			}
		}
	})
	t.Logf("%d times infeasible, %d times removed", infeasible, removed)
	require.Positive(t, infeasible)
	require.Positive(t, removed)
}

// drawOfParts draws a condition. Some of them compare parts, which attribute z numbers.
func drawOfParts(t *rapid.T) string {
	attributes := randomexpr.Attributes{Domain: "d", Ints: []string{"x", "y", "z"}, String: "s"}
	lists := []string{"devices", "devices.filter(d, d.z == 0)", "devices.filter(d, d.z != 1)", "devices.filter(d, d.y > 0)", "devices.filter(d, d.s == 'a')"}
	list := func() string { return rapid.SampledFrom(lists).Draw(t, "list") }
	one := func() string {
		switch rapid.IntRange(0, 7).Draw(t, "condition") {
		case 0:
			return list() + ".map(d, d.y).distinct().size() <= 1"
		case 1:
			return list() + ".map(d, d.x).distinct().size() == 2"
		case 2:
			return list() + ".segments(2, d, d.s)"
		case 3:
			return list() + ".segments(3, d, d.y)"
		case 4:
			return list() + ".map(d, d.s).distinct().size() >= " + list() + ".map(d, d.y).distinct().size()"
		case 5:
			return list() + ".map(d, d.x).sum() == " + rapid.SampledFrom([]string{"1", "3", "4"}).Draw(t, "sum")
		case 6:
			return list() + ".size() >= " + list() + ".size()"
		default:
			return "(" + randomexpr.Condition(t, attributes) + ")"
		}
	}
	text := one()
	for range rapid.IntRange(0, 2).Draw(t, "more") {
		text += rapid.SampledFrom([]string{" && ", " || ", " && !"}).Draw(t, "joined") + "(" + one() + ")"
	}
	return text
}
