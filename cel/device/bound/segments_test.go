// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
)

// drawSegments draws an expression whose key and filter don't fail for the devices of drawKeyed.
func drawSegments(t *rapid.T) string {
	list := rapid.SampledFrom([]string{"devices", "devices", "devices.filter(p, p.s == 'a')", "devices.filter(p, p.s == 'a').filter(p, p.x > 0)"}).Draw(t, "list")
	key := rapid.SampledFrom([]string{"d.x", "d.s", "[d.x, d.y]", "d.x > 0", "d.x * 2 + d.y"}).Draw(t, "key")
	size := rapid.SampledFrom([]int64{1, 2, 2, 2, 3, 3, 4, 5, math.MaxInt64}).Draw(t, "segment")
	return fmt.Sprintf("%s.segments(%d, d, %s)", list, size, key)
}

func drawKeyed(t *rapid.T, n int) []*device.Device {
	all := make([]values, n)
	for i := range all {
		all[i] = values{
			"x": rapid.IntRange(0, 2).Draw(t, "x"), "y": rapid.IntRange(0, 1).Draw(t, "y"), "s": rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "s"),
		}
	}
	return devicesWith(all...)
}

// TestSegmentsAreExact compares the removed and required devices with all completions. The devices without a completion are removed,
// and no others. The devices that all completions contain are required, and no others.
func TestSegmentsAreExact(t *testing.T) {
	e := environment(t)
	infeasible, removed, required, open := 0, 0, 0, 0
	cases.CheckN(t, cases.Of(1000, 10_000), func(rt *rapid.T) {
		f := compiled(rt, e, drawSegments(rt))
		n := rapid.IntRange(1, 9).Draw(rt, "devices")
		s := soundOf(f, rapid.IntRange(1, n).Draw(rt, "size"), drawKeyed(rt, n))
		bounds := s.bounds(rt)
		for range 4 {
			p := drawPartial(rt, s)
			if p.Domain.Count() < p.Left {
				continue
			}
			is, propagated := s.check(rt, bounds, p, bound.Quick)
			some, every := bitset.New(n), of(n, upTo(n)...)
			found := false
			completions(p, n, 0, func(set bitset.Set) {
				if s.outcome(rt, set) == bound.True {
					found = true
					some.Join(set)
					every.Keep(set)
				}
			})
			about := fmt.Sprintf("%s\n%+v", s.text, p)
			require.Equal(rt, !found, is, about)
			require.Equal(rt, found, bounds.Bound(clone(p)).May(bound.True), about)
			if !found {
				infeasible++
				continue
			}
			every.Drop(p.Chosen)
			if p.Left > 0 {
				some.Drop(p.Chosen)
				require.Equal(rt, positions(some), positions(propagated.Domain), about)
			}
			require.Equal(rt, positions(every), positions(propagated.Forced), about)
			switch {
			case !every.IsEmpty():
				required++
			case p.Left > 0 && some.Count() < p.Domain.Count():
				removed++
			default:
				open++
			}
		}
	})
	t.Logf("%d infeasible, %d with required devices, %d with removed ones only, %d others", infeasible, required, removed, open)
	require.Positive(t, min(infeasible, required, removed, open))
}

// TestSegmentsAreSound covers keys and filters that fail for some devices, negations and combinations.
func TestSegmentsAreSound(t *testing.T) {
	var seen statistics
	forms := []string{
		"%[1]s", "!%[1]s", "%[1]s && %[2]s", "%[1]s || !%[2]s", "devices.all(d, %[1]s || d.attributes['d'].y > 1)", "(%[1]s ? 1 : 2) == (%[2]s ? 1 : 2)",
	}
	cases.CheckN(t, cases.Of(1000, 10_000), soundnessOf(t, &seen, func(t *rapid.T) string {
		segments := func() string {
			list := rapid.SampledFrom([]string{
				"devices", "devices.filter(o, o.attributes['d'].s != 'a')", "devices.filter(o, devices.exists(p, p.attributes['d'].y == o.attributes['d'].y + 1))",
			}).Draw(t, "list")
			key := rapid.SampledFrom([]string{"s", "x", "y / 2", "y", "list", "version", "list[0]"}).Draw(t, "key")
			return fmt.Sprintf("%s.segments(%d, o, o.attributes['d'].%s)", list, rapid.IntRange(0, 3).Draw(t, "segment"), key)
		}
		return fmt.Sprintf(rapid.SampledFrom(forms).Draw(t, "form")+"%.0[1]s%.0[2]s", segments(), segments())
	}))
	t.Logf("%+v", seen)
	require.Greater(t, seen.infeasible, 50)
}

// TestSegmentsOfManyDevices has sizes and numbers of devices that must not overflow, and too few segments in all cliques.
func TestSegmentsOfManyDevices(t *testing.T) {
	var all []values
	for i := range 1024 {
		all = append(all, values{"x": i / 18})
	}
	e := environment(t)
	for _, of := range []struct {
		size, segment int64
		possible      int
		infeasible    bool
	}{
		{64, 8, 1024, false}, {64, 8, 4 * 18, false}, {64, 8, 3*18 + 7, true}, {64, 16, 1024, false}, {64, 19, 1024, true}, {18, math.MaxInt64, 18, false}, {19, math.MaxInt64, 1024, true},
	} {
		s := newSound(t, e, fmt.Sprintf("devices.segments(%d, d, d.x)", of.segment), int(of.size), devicesWith(all...))
		p := s.partial(nil, upTo(of.possible))
		require.Equal(t, of.infeasible, s.bounds(t).Infeasible(p, bound.Quick), "%+v", of)
	}
}
