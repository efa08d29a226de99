// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
)

// Numbers of devices compared with all limits that make a difference, in either order
// and negated, for predicates over one device and two, some of which fail.
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

// What is removed and required because of a number.
func TestCountsRemoveAndRequire(t *testing.T) {
	e := environment(t)
	all := ranked(0, 1, 2, 3, 4, 5)
	for name, test := range map[string]struct {
		text             string
		chosen, possible []int
		left             []int // nil: infeasible
		required         []int
	}{
		"enough others":                {"devices.filter(d, d.x < 3).size() <= 1", []int{0}, []int{1, 2, 3, 4, 5}, []int{3, 4, 5}, nil},
		"too few others":               {"devices.filter(d, d.x < 3).size() <= 1", []int{0}, []int{1, 2, 3}, nil, nil},
		"all others are needed":        {"devices.filter(d, d.x < 3).size() <= 1", nil, []int{1, 2, 4, 5}, []int{1, 2, 4, 5}, nil},
		"only just enough":             {"devices.filter(d, d.x < 3).size() >= 2", nil, []int{0, 2, 3, 4, 5}, []int{0, 2, 3, 4, 5}, []int{0, 2}},
		"only just enough, none other": {"devices.filter(d, d.x < 3).size() == 3", []int{0}, []int{1, 2, 3, 4, 5}, upTo(6)[1:], []int{1, 2}},
		"no other has room":            {"devices.filter(d, d.x < 3).size() >= 2", []int{4}, []int{0, 1, 2, 3, 5}, []int{0, 1, 2}, nil},
		"too many already":             {"devices.filter(d, d.x < 3).size() == 1", []int{0, 1}, []int{3}, nil, nil},
		"not enough are left":          {"devices.filter(d, d.x < 3).size() >= 2", []int{3, 4}, []int{0, 1}, nil, nil},
		"complete":                     {"devices.filter(d, d.x < 3).size() >= 2", []int{0, 1, 5}, []int{3}, []int{3}, nil},
		"one must be":                  {"devices.exists(d, d.x == 4)", nil, upTo(6), upTo(6), []int{4}},
		"just one":                     {"devices.exists_one(d, d.x < 4)", nil, []int{0, 1, 4, 5}, []int{0, 1, 4, 5}, nil},
		"just one, and there is one":   {"devices.exists_one(d, d.x < 4)", []int{0}, []int{1, 2, 4, 5}, []int{4, 5}, []int{4, 5}},
		"all":                          {"devices.all(d, d.x < 4)", nil, upTo(6), upTo(4), nil},
		"all, and as many as wanted":   {"devices.all(d, d.x < 3)", nil, upTo(6), upTo(3), upTo(3)},
		"neither":                      {"!devices.exists(d, d.x > 3)", nil, upTo(6), upTo(4), nil},
		"not all":                      {"!devices.all(d, d.x < 4)", nil, []int{0, 1, 2, 3, 5}, []int{0, 1, 2, 3, 5}, []int{5}},
		"more than none":               {"devices.filter(d, d.x > 4).size() != 0", nil, upTo(6), upTo(6), []int{5}},
		"not in an alternative":        {"devices.exists(d, d.x == 4) || devices.exists(d, d.x == 5)", nil, upTo(6), upTo(6), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSound(t, e, test.text, 3, all)
			infeasible, propagated := s.check(t, s.bounds(t), s.partial(test.chosen, test.possible), bound.Quick)
			require.Equal(t, test.left == nil, infeasible)
			if !infeasible {
				require.Equal(t, test.left, positions(propagated.Domain))
				require.ElementsMatch(t, test.required, positions(propagated.Forced))
			}
		})
	}
}

// Chosen devices that need all that is left leave nothing for those that they can't
// count. On a path each wants two others within two steps.
func TestChosenDevicesStarveOthers(t *testing.T) {
	const near = "devices.all(d, devices.filter(o, d != o && d.x - o.x <= 2 && o.x - d.x <= 2).size() >= 2)"
	s := newSound(t, environment(t), near, 4, ranked(0, 1, 2, 3, 4, 5, 6, 7))
	// 0 needs 1 and 2; the fourth one must be near two of those.
	infeasible, propagated := s.check(t, s.bounds(t), s.partial([]int{0}, upTo(8)[1:]), bound.Quick)
	require.False(t, infeasible)
	require.Equal(t, []int{1, 2, 3}, positions(propagated.Domain))
	require.Equal(t, []int{1, 2, 3}, positions(propagated.Forced))

	// 3 needs two of the three that are left. Were 7 chosen, both others had to be near
	// 3, and only 5 of those is near 7. 6 has 4 and 5.
	infeasible, propagated = s.check(t, s.bounds(t), s.partial([]int{3}, []int{0, 1, 2, 4, 5, 6, 7}), bound.Quick)
	require.False(t, infeasible)
	require.Equal(t, []int{0, 1, 2, 4, 5, 6}, positions(propagated.Domain))
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

// General cardinalities: how many devices there are for which something about the set holds.
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

// A stretch: all devices but one have a successor in the set.
func TestCountsOfAStretch(t *testing.T) {
	s := newSound(t, environment(t), "devices.exists_one(d, !devices.exists(o, o.x == (d.x + 1) % 6))", 3, ranked(0, 1, 2, 3, 4, 5))
	for name, test := range map[string]struct {
		chosen, possible []int
		left             []int // nil: infeasible
		required         []int
	}{
		"two lasts":             {[]int{0, 3}, []int{5}, nil, nil},
		"two lasts in any case": {[]int{0, 3}, []int{4, 5}, nil, nil},
		"one is missing":        {[]int{3, 5}, []int{1, 4}, []int{4}, []int{4}},
		"one before":            {[]int{0, 1}, []int{3, 5}, []int{5}, []int{5}},
		"no room":               {[]int{1}, []int{0, 3, 4}, nil, nil},
		"complete":              {[]int{0, 4, 5}, []int{1}, []int{1}, nil},
		"complete, not one":     {[]int{0, 2, 4}, []int{1}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			infeasible, propagated := s.check(t, s.bounds(t), s.partial(test.chosen, test.possible), bound.Thorough)
			require.Equal(t, test.left == nil, infeasible, "%v %v", positions(propagated.Domain), positions(propagated.Forced))
			if !infeasible {
				require.Equal(t, test.left, positions(propagated.Domain))
				require.ElementsMatch(t, test.required, positions(propagated.Forced))
			}
		})
	}
}
