// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/transcript"
)

// TestPropagation records the removed and required devices of partial sets, and checks them against all completions.
func TestPropagation(t *testing.T) {
	e := environment(t)
	var all []*device.Device
	var s *sound
	transcript.Run(t, "testdata/propagation.txt", func(t *testing.T, input string) string {
		if spec, ok := strings.CutPrefix(input, "devices "); ok {
			all = specified(t, spec)
			return ""
		}
		if size, text, ok := strings.Cut(input, ": "); ok {
			if n, err := strconv.Atoi(size); err == nil {
				s = newSound(t, e, text, n, all)
				return ""
			}
		}
		chosen, possible, _ := strings.Cut(input[strings.LastIndex(input, ": ")+1:], "|")
		p := s.partial(listed(t, chosen), listed(t, possible))
		var results []string
		for _, effort := range []bound.Effort{bound.Quick, bound.Thorough} {
			infeasible, propagated := s.check(t, s.bounds(t), p, effort)
			result := ranges(propagated.Domain)
			switch {
			case infeasible:
				result = "infeasible"
			case !propagated.Forced.IsEmpty():
				result += ", required " + ranges(propagated.Forced)
			}
			results = append(results, result)
		}
		if results[0] == results[1] {
			return results[0]
		}
		return strings.Join(results, "; ")
	})
}

// specified parses a description of devices, such as "x: 3 4", "grid 2 4", "ring 8" or "couples 3 2".
func specified(t *testing.T, spec string) []*device.Device {
	t.Helper()
	fields := strings.Fields(spec)
	var numbers []int64
	for _, field := range fields[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		require.NoError(t, err)
		numbers = append(numbers, n)
	}
	switch fields[0] {
	case "x:":
		return ranked(numbers...)
	case "grid":
		return grid(int(numbers[0]), int(numbers[1]))
	case "ring":
		return ring(int(numbers[0]))
	default:
		return twoKinds(int(numbers[0]), int(numbers[1]))
	}
}

// ring returns n devices in a ring. Attribute x of a device is its index, and y the index of the next device.
func ring(n int) []*device.Device {
	var all []values
	for i := range n {
		all = append(all, values{"x": i, "y": (i + 1) % n})
	}
	return devicesWith(all...)
}

// twoKinds returns devices of two kinds. Each kind is numbered from 0.
func twoKinds(a, b int) []*device.Device {
	var all []values
	for i := range a + b {
		if i < a {
			all = append(all, values{"x": i, "s": "a"})
		} else {
			all = append(all, values{"x": i - a, "s": "b"})
		}
	}
	return devicesWith(all...)
}

// listed parses a list of indexes with ranges, such as "0,2-4".
func listed(t *testing.T, text string) []int {
	t.Helper()
	var result []int
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		require.NoError(t, err)
		last := first
		if isRange {
			last, err = strconv.Atoi(to)
			require.NoError(t, err)
		}
		for i := first; i <= last; i++ {
			result = append(result, i)
		}
	}
	return result
}

func ranges(set bitset.Set) string {
	var parts []string
	for i := set.Next(0); i >= 0; {
		last := i
		for set.Next(last+1) == last+1 {
			last++
		}
		switch last - i {
		case 0:
			parts = append(parts, fmt.Sprint(i))
		case 1:
			parts = append(parts, fmt.Sprint(i), fmt.Sprint(last))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", i, last))
		}
		i = set.Next(last + 1)
	}
	return strings.Join(parts, ",")
}

// counting draws an expression that may require devices: a conjunction, disjunction or negation of counts, distances and
// quantifiers.
func counting(t *rapid.T, depth int) string {
	if depth > 0 {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return "(" + counting(t, depth-1) + " || " + counting(t, depth-1) + ")"
		case 1:
			return "!(" + counting(t, depth-1) + ")"
		case 2, 3:
			return "(" + counting(t, depth-1) + " && " + counting(t, depth-1) + ")"
		}
	}
	relation := rapid.SampledFrom([]string{"==", "<=", ">=", "<", ">", "!="}).Draw(t, "relation")
	limit := rapid.IntRange(0, 3).Draw(t, "limit")
	of := func(predicates ...string) string { return rapid.SampledFrom(predicates).Draw(t, "predicate") }
	one := of("d.x < 2", "d.y == 1", "d.y > d.x", "d.x == 3 || d.y == 0", "d.s == 'a'")
	two := of("d.x == o.x + 1", "d != o && d.y == o.y", "d.x < o.x", "d.s == o.s && d.x != o.x", "d.y - o.y <= 1 && o.y - d.y <= 1")
	follows := of("d.x == o.x + 1", "o.x == d.y", "o.x == (d.x + 1) % 4", "d.x < o.x")
	switch rapid.IntRange(0, 15).Draw(t, "form") {
	case 6:
		return fmt.Sprintf("devices.filter(d, !devices.exists(o, %s)).size() <= 1", follows)
	case 7:
		return fmt.Sprintf("devices.map(d, devices.filter(o, %s).size()).sum() == devices.size() - 1", follows)
	case 8:
		return fmt.Sprintf("devices.map(d, %s).sum() %s %d * %d", of("d.x", "d.y * 3 - 4", "d.x - d.y"), relation, limit, limit)
	case 9:
		return fmt.Sprintf("devices.map(d, d.x).sum() %% 3 == %d && devices.map(d, d.x).sum() %s 2 * %d", limit, relation, limit)
	case 10:
		return fmt.Sprintf("devices.map(d, d.x).sum() %s 2 * devices.map(d, d.y).sum() - %d", relation, limit)
	case 11:
		return fmt.Sprintf("devices.all(d, devices.filter(o, d != o && d.x == o.x).size() %s %d)", relation, limit)
	case 12:
		return fmt.Sprintf("cel.bind(q, devices.map(d, d.x).sort(), q[%[2]d] - q[%[2]d - 1] %[1]s %[3]d)", relation, max(1, limit), limit)
	case 13:
		return fmt.Sprintf("devices.all(d, devices.all(o, d.y - o.y <= %d))", limit)
	case 14:
		return fmt.Sprintf("devices.map(d, devices.filter(o, %s).size()).%s %s %d", two, of("min()", "max()"), relation, limit)
	case 15:
		return fmt.Sprintf("[0, 1, %d].all(y, devices.exists(d, d.y == y))", limit)
	case 0:
		return fmt.Sprintf("devices.filter(d, %s).size() %s %d", one, relation, limit)
	case 1:
		return fmt.Sprintf("devices.all(d, devices.filter(o, %s).size() %s %d)", two, relation, limit)
	case 2:
		return fmt.Sprintf("devices.exists_one(d, !devices.exists(o, %s))", two)
	case 3:
		return fmt.Sprintf("devices.exists(d, %s)", one)
	case 4:
		return fmt.Sprintf("devices.all(d, %s || devices.exists(o, %s))", one, two)
	default:
		return fmt.Sprintf("%s %s %d", width(of("x", "y")), relation, limit)
	}
}

// drawDevices draws n devices. Some devices lack attribute x or have a string as x.
func drawDevices(t *rapid.T, n int) []*device.Device {
	all := make([]values, n)
	for i := range all {
		all[i] = values{"y": rapid.IntRange(0, 3).Draw(t, "y"), "s": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "s")}
		switch rapid.IntRange(0, 19).Draw(t, "x") {
		case 0:
		case 1:
			all[i]["x"] = "text"
		default:
			all[i]["x"] = rapid.IntRange(0, 4).Draw(t, "number")
		}
	}
	return devicesWith(all...)
}

// TestRequiredIsInEveryCompletion checks that each completion that is not false has all required devices and no removed device.
func TestRequiredIsInEveryCompletion(t *testing.T) {
	e := environment(t)
	partials, infeasible, requiring, open := 0, 0, 0, 0
	cases.CheckN(t, cases.Of(400, 2000), func(rt *rapid.T) {
		f := compiled(rt, e, counting(rt, rapid.IntRange(0, 3).Draw(rt, "depth")))
		n := rapid.IntRange(2, 7).Draw(rt, "devices")
		s := soundOf(f, rapid.IntRange(1, min(n, 4)).Draw(rt, "size"), drawDevices(rt, n))
		bounds := s.bounds(rt)
		// The same bounds and tables serve several partial sets.
		for range 4 {
			p := drawPartial(rt, s)
			for _, effort := range []bound.Effort{bound.Quick, bound.Thorough} {
				partials++
				is, propagated := s.check(rt, bounds, p, effort)
				switch {
				case is:
					infeasible++
				case propagated.Forced.IsEmpty():
					open++
				case propagated.Forced.Count() < propagated.Domain.Count():
					requiring++
				}
			}
		}
	})
	t.Logf("%d partial sets: %d infeasible, %d with required devices, %d without", partials, infeasible, requiring, open)
	require.Greater(t, infeasible, partials/5)
	require.Greater(t, requiring, partials/2000)
	require.Greater(t, open, partials/10)
}

// TestRequiredMayBeNil checks that Infeasible accepts a partial set whose Forced is nil.
func TestRequiredMayBeNil(t *testing.T) {
	s := newSound(t, environment(t), "devices.exists(d, d.x == 1)", 2, ranked(0, 1, 2))
	p := s.partial(nil, []int{0, 1, 2})
	p.Forced = nil
	require.False(t, s.bounds(t).Infeasible(p, bound.Quick))
	require.Equal(t, []int{0, 1, 2}, positions(p.Domain), "what is required stays possible")
	require.Empty(t, positions(p.Chosen))
}

// TestExhaustedBoundsAreOpen checks that all results are open after a call visited too many devices, even if a later conjunct
// is false.
func TestExhaustedBoundsAreOpen(t *testing.T) {
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

// TestBoundsEndWithTheContext checks that the work stops when the context ends, even within the work for a single device.
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
	// The tables are already filled, so the bounds don't call CEL here.
	b = s.tables.NewBounds(ended, nil)
	require.Equal(t, bound.Open, b.Bound(everyOther(n)))
	require.NoError(t, b.Err())
	require.True(t, b.Exhausted())
}

// TestStatus checks the status that propagation returns. After Failed all completions are false, after Subsumed all are true,
// and after Fix propagating again changes nothing.
func TestStatus(t *testing.T) {
	e := environment(t)
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(1000, 10_000), func(rt *rapid.T) {
		text := counting(rt, rapid.IntRange(0, 3).Draw(rt, "depth"))
		if rapid.IntRange(0, 3).Draw(rt, "relation") == 0 {
			text = rapid.SampledFrom(relations).Draw(rt, "text")
		}
		f := compiled(rt, e, text)
		n := rapid.IntRange(2, 7).Draw(rt, "devices")
		s := soundOf(f, rapid.IntRange(1, min(n, 4)).Draw(rt, "size"), drawDevices(rt, n))
		bounds := s.bounds(rt)
		for range 4 {
			before := drawPartial(rt, s)
			after := clone(before)
			was, changed, ok := bounds.Propagate(&after)
			if !ok {
				continue
			}
			seen[was]++
			require.False(rt, was == "Fix" && changed, "%s\n%+v", text, before)
			of := after
			if was == "Failed" {
				of = before
			}
			completions(of, n, 0, func(set bitset.Set) {
				switch outcome := s.outcome(rt, set); was {
				case "Failed":
					require.Equal(rt, bound.False, outcome, "%s\n%+v: %b", text, before, set)
				case "Subsumed":
					require.Equal(rt, bound.True, outcome, "%s\n%+v: %b", text, before, set)
				}
			})
		}
	})
	t.Log(seen)
	for _, was := range []string{"Failed", "NoFix", "Fix", "Subsumed"} {
		require.Positive(t, seen[was], was)
	}
}
