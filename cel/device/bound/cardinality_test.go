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
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
)

// TestCountsAreSound compares numbers of devices with all relevant limits, in both orders and negated. The counted predicates
// are on one or two devices. Some predicates fail for some devices.
func TestCountsAreSound(t *testing.T) {
	devices := [][]*device.Device{
		ranked(0, 1, 2, 3, 4),
		ranked(1, 1, 2, 2, 2),
		devicesWith(values{"x": 0}, values{}, values{"x": 1}, values{"x": "text"}, values{"x": 2}),
	}
	e := environment(t)
	for _, relation := range []string{"==", "!=", "<", "<=", ">", ">="} {
		for _, limit := range []int64{math.MinInt64, -1, 0, 1, 2, 3, math.MaxInt64} {
			for _, count := range []string{
				fmt.Sprintf("devices.filter(d, d.x < 2).size() %s %d", relation, limit),
				fmt.Sprintf("%d %s size(devices.filter(d, d.x < 2))", limit, relation),
				fmt.Sprintf("devices.all(d, devices.filter(o, d.x == o.x + 1 || o.x == d.x + 1).size() %s %d)", relation, limit),
				fmt.Sprintf("devices.exists(d, devices.filter(o, d != o && d.x < o.x).size() %s %d)", relation, limit),
			} {
				alone, negated := compiled(t, e, count), compiled(t, e, "!("+count+")")
				for _, all := range devices {
					soundOf(alone, 3, all).checkAll(t)
					soundOf(negated, 2, all).checkAll(t)
				}
			}
		}
	}
}

func TestStarvedIsSound(t *testing.T) {
	const (
		beside   = "(d.x == o.x && (d.y == o.y + 1 || o.y == d.y + 1) || d.y == o.y && (d.x == o.x + 1 || o.x == d.x + 1))"
		opposite = "(d != o && ((d.x - o.x + 8) % 8 <= 2 || (o.x - d.x + 8) % 8 <= 2))"
	)
	e := environment(t)
	for text, all := range map[string][]*device.Device{
		"devices.all(d, devices.filter(o, " + beside + ").size() >= 2)":                 grid(2, 4),
		"devices.all(d, devices.filter(o, " + beside + ").size() == 2)":                 grid(2, 4),
		"devices.all(d, devices.filter(o, !" + beside + ").size() > 3)":                 grid(2, 4),
		"devices.all(d, devices.filter(o, " + opposite + ").size() >= 2)":               ranked(0, 1, 2, 3, 4, 5, 6, 7),
		"devices.all(d, devices.filter(o, d.x == o.y).size() in [2]) && true":           grid(2, 3),
		"devices.all(d, devices.filter(o, d.y <= o.x || d.x == 0 / o.y).size() >= 2)":   grid(2, 3),
		"devices.all(d, devices.filter(o, devices.size() == 4 && d.x == 0).size() > 1)": grid(2, 3),
	} {
		f := compiled(t, e, text)
		for size := 3; size <= 6; size++ {
			soundOf(f, size, all).checkAll(t)
		}
	}
	infeasible, requiring := newSound(t, e, "devices.all(d, devices.filter(o, "+beside+").size() >= 2)", 4, grid(2, 4)).checkAll(t)
	require.Greater(t, infeasible, 5000)
	require.Greater(t, requiring, 500)
}

// TestTalliesAreSound covers the number of devices that satisfy a condition on the set (generalCardinality).
func TestTalliesAreSound(t *testing.T) {
	const (
		last      = "!devices.exists(o, o.x == d.x + 1)"
		succeeded = "devices.exists(o, o.x == d.x + 1)"
		alone     = "devices.filter(o, o.x == d.x).size() == 1"
		fails     = "devices.exists(o, o.x == d.x + 1 && o.y == d.y)"
	)
	devices := [][]*device.Device{
		ranked(0, 1, 2, 3, 4),
		ranked(0, 0, 1, 1, 5),
		devicesWith(values{"x": 0, "y": 0}, values{"x": 1}, values{"x": 2, "y": 0}, values{"y": 1}, values{"x": 1, "y": 0}),
	}
	e := environment(t)
	infeasible, requiring := 0, 0
	for _, holds := range []string{last, succeeded, alone, fails} {
		for _, relation := range []string{"==", "!=", "<=", ">="} {
			for limit := range 4 {
				f := compiled(t, e, fmt.Sprintf("devices.filter(d, %s).size() %s %d", holds, relation, limit))
				for _, all := range devices {
					h, r := soundOf(f, 3, all).checkAll(t)
					infeasible, requiring = infeasible+h, requiring+r
				}
			}
		}
		for _, text := range []string{"devices.exists_one(d, %s)", "!devices.exists_one(d, %s)", "devices.exists_one(d, %s) || devices.all(d, d.x > 1)"} {
			f := compiled(t, e, fmt.Sprintf(text, holds))
			for _, all := range devices {
				soundOf(f, 3, all).checkAll(t)
				soundOf(f, 1, all).checkAll(t)
			}
		}
	}
	require.Positive(t, infeasible)
	require.Positive(t, requiring)
}

const sumOfX = "devices.map(d, d.x).sum()"

// TestSumsAreSound covers sums of numbers up to the extremes of int64, with limits around 0 and near these extremes.
func TestSumsAreSound(t *testing.T) {
	const least, most = math.MinInt64, math.MaxInt64
	devices := [][]*device.Device{
		ranked(0, 1, 2, 4, 7),
		ranked(3, 3, 3, 5, -3),
		ranked(-1, -2, -2, 9),
		ranked(least, least+1, -1, 0),
		ranked(most, most-1, 0, 1),
		ranked(least, 0, most, 1),
		ranked(least/4, least/4-1, most/4, 1),
		devicesWith(values{"x": 0}, values{}, values{"x": 1}, values{"x": "text"}, values{"x": 5}),
	}
	soundWithLimits(t, []int64{least, least + 1, least / 2, -4, -1, 0, 1, 3, 6, 11, most / 2, most - 1, most}, devices, sumOfX)
}

// TestSumsRemoveAllTheyCan checks that a condition on a sum alone removes exactly the devices that no satisfying set contains.
func TestSumsRemoveAllTheyCan(t *testing.T) {
	e := environment(t)
	cases.CheckN(t, cases.Of(2000, 10_000), func(rt *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Int64Range(-5, 5), 4, 8).Draw(rt, "numbers")
		limit, relation := rapid.Int64Range(-16, 16).Draw(rt, "limit"), rapid.SampledFrom([]string{">", ">=", "<", "<="}).Draw(rt, "relation")
		s := newSound(t, e, fmt.Sprintf("%s %s %d", sumOfX, relation, limit), 3, ranked(numbers...))
		var chosen, possible []int
		for i := range numbers {
			switch rapid.IntRange(0, 5).Draw(rt, "is") {
			case 0:
				if len(chosen) < 3 {
					chosen = append(chosen, i)
				}
			case 1:
			default:
				possible = append(possible, i)
			}
		}
		infeasible, propagated := s.check(t, s.bounds(t), s.partial(chosen, possible), bound.Thorough)
		useful := map[int]bool{}
		s.completions(chosen, possible, func(set []int) {
			sum := int64(0)
			for _, i := range set {
				sum += numbers[i]
			}
			if map[string]bool{">": sum > limit, ">=": sum >= limit, "<": sum < limit, "<=": sum <= limit}[relation] {
				useful[-1] = true
				for _, i := range set {
					useful[i] = true
				}
			}
		})
		require.Equal(rt, !useful[-1], infeasible)
		if infeasible || len(chosen) == 3 {
			return
		}
		for _, i := range possible {
			require.Equal(rt, useful[i], propagated.Domain.Has(i), "device %d", i)
		}
	})
}

// completions calls f for each set of three devices that contains the chosen devices.
func (s *sound) completions(chosen, possible []int, f func(set []int)) {
	if len(chosen) == 3 {
		f(chosen)
		return
	}
	for i, device := range possible {
		s.completions(append(append([]int{}, chosen...), device), possible[i+1:], f)
	}
}
