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

// width is the distance of the extremes of an attribute.
func width(attribute string) string {
	return fmt.Sprintf("devices.map(d, d.%[1]s).max() - devices.map(d, d.%[1]s).min()", attribute)
}

// grid has rows and columns in the attributes x and y.
func grid(rows, columns int) []*device.Device {
	var all []values
	for x := range rows {
		for y := range columns {
			all = append(all, values{"x": x, "y": y})
		}
	}
	return devicesWith(all...)
}

func TestBoxesAreSound(t *testing.T) {
	const far = math.MaxInt64
	devices := map[string][]*device.Device{
		"grid":           grid(2, 3),
		"scattered":      devicesWith(values{"x": 5, "y": -2}, values{"x": 0, "y": 0}, values{"x": 1, "y": 9}, values{"x": 1, "y": 1}, values{"x": 6, "y": -1}, values{"x": 0, "y": 1}),
		"equal":          devicesWith(values{"x": 1, "y": 1}, values{"x": 1, "y": 1}, values{"x": 1, "y": 1}, values{"x": 1, "y": 2}),
		"x is missing":   devicesWith(values{"x": 0, "y": 0}, values{"y": 0}, values{"x": 1, "y": 1}, values{"x": 2, "y": 5}, values{"x": 1, "y": 0}),
		"y is text":      devicesWith(values{"x": 0, "y": 0}, values{"x": 0, "y": 1}, values{"x": 1, "y": "1"}, values{"x": 9, "y": 1}, values{"x": 1, "y": 0}),
		"nothing at all": devicesWith(values{}, values{}, values{}),
		"x overflows":    devicesWith(values{"x": int64(-far - 1), "y": 0}, values{"x": int64(far), "y": 0}, values{"x": 1, "y": 0}, values{"x": 2, "y": 1}, values{"x": int64(far), "y": 1}),
		"y overflows":    devicesWith(values{"x": 0, "y": int64(-far - 1)}, values{"x": 0, "y": int64(far)}, values{"x": 1, "y": 3}, values{"x": 1, "y": 4}, values{"x": 5, "y": 1}),
		"both overflow":  devicesWith(values{"x": int64(far), "y": int64(-far - 1)}, values{"x": int64(-far), "y": int64(far)}, values{"x": 1, "y": 3}, values{"x": 1, "y": 4}, values{"x": 0, "y": 3}),
	}
	e := environment(t)
	for _, text := range []string{
		width("x") + " == 1 && " + width("y") + " == 1",
		width("x") + " <= 1 && " + width("y") + " <= 1",
		width("y") + " <= 1 && " + width("x") + " <= 1",
		width("x") + " >= 1 && " + width("y") + " < 2 && devices.exists(d, d.x == 0)",
		width("x") + " > 1 && " + width("y") + " > 0",
		"1 >= " + width("x") + " && 0 < " + width("y"),
		"(" + width("x") + " == 1 && " + width("y") + " == 2) || (" + width("x") + " == 0 && " + width("y") + " == 1)",
		"(" + width("x") + " == 1 && " + width("y") + " == 0) && (" + width("x") + " == 1 && " + width("y") + " >= 0)",
		width("x") + " == 1 && " + width("x") + " <= 9223372036854775807",
		width("x") + " != 1 && " + width("y") + " == 0",
		width("x") + " < -9223372036854775807 && " + width("y") + " == 0",
	} {
		expression := compiled(t, e, text)
		for _, all := range devices {
			for size := 1; size <= 3; size++ {
				soundOf(expression, size, all).checkAll(t)
			}
		}
	}
}

// The places are those at each number that may be the smallest one: with numbers far
// and wide there would be too many, and each side is looked at alone.
func TestBoxWithTooManyPlaces(t *testing.T) {
	const n = 40
	var all []values
	for i := range n {
		// No two have a number in common.
		all = append(all, values{"x": i, "y": (i * 3) % n, "z": (i * 11) % n})
	}
	e := environment(t)
	text := width("x") + " <= 30 && " + width("y") + " <= 30 && " + width("z") + " <= 3"
	s := newSound(t, e, text, 2, devicesWith(all...))
	infeasible, propagated := s.check(t, s.bounds(t), s.partial([]int{0}, upTo(n)[1:]), bound.Quick)
	require.False(t, infeasible)
	for i := 1; i < n; i++ {
		want := i <= 30 && (i*3)%n <= 30 && (i*11)%n <= 3
		require.Equal(t, want, propagated.Domain.Has(i), "device %d", i)
	}
	infeasible, _ = s.check(t, s.bounds(t), s.partial([]int{0, 35}, nil), bound.Quick)
	require.True(t, infeasible)
}

// Where a side overflows for some devices, the others still have their boxes.
func TestBoxOfNumbersTooFarApart(t *testing.T) {
	s := newSound(t, environment(t), width("x")+" <= 1 && "+width("y")+" <= 1", 2, devicesWith(
		values{"x": int64(math.MinInt64), "y": 0}, values{"x": int64(math.MaxInt64), "y": 0},
		values{"x": 4, "y": 0}, values{"x": 5, "y": 1}, values{"x": 5, "y": 7},
	))
	require.Equal(t, bound.True, s.outcome(t, of(5, 2, 3)))
	infeasible, propagated := s.check(t, s.bounds(t), s.partial(nil, []int{0, 1, 2, 3, 4}), bound.Thorough)
	require.False(t, infeasible)
	require.Subset(t, positions(propagated.Domain), []int{0, 1, 2, 3}, "0 and 1 together fail")
}

// One side alone may have too many places.
func TestSideWithTooManyPlaces(t *testing.T) {
	const n = 1100
	numbers := make([]int64, n)
	for i := range numbers {
		numbers[i] = int64(3 * i)
	}
	numbers[1] = 1
	s := newSound(t, environment(t), width("x")+" <= 1", 2, ranked(numbers...))
	p := s.partial([]int{0}, upTo(n)[1:])
	require.False(t, s.bounds(t).Infeasible(p, bound.Quick))
	require.Equal(t, []int{1}, positions(p.Domain))
	p = s.partial([]int{2}, upTo(n)[3:])
	require.True(t, s.bounds(t).Infeasible(p, bound.Quick))
}
