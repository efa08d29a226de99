// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
)

// width returns an expression for the greatest minus the smallest value of an attribute.
func width(attribute string) string {
	return fmt.Sprintf("devices.map(d, d.%[1]s).max() - devices.map(d, d.%[1]s).min()", attribute)
}

// grid returns devices with rows in x and columns in y.
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

// TestBoxesOfListsAreSound covers places that are stored as lists of devices, and boxes with sides in any order and on circles.
func TestBoxesOfListsAreSound(t *testing.T) {
	// With many strangers, each place has few of all devices, so it is stored as a list.
	strangers = devicesWith(make([]values, 320)...)
	defer func() { strangers = nil }()
	t.Run("spans", TestBoxesAreSound)
	var seen statistics
	side := rapid.IntRange(1, 4)
	cases.CheckN(t, cases.Of(1000, 10_000), soundnessOf(t, &seen, func(t *rapid.T) string {
		of := rapid.SampledFrom([]string{"devices", "devices.filter(d, d.attributes['d'].s != 'a')"}).Draw(t, "of")
		circles := rapid.SampledFrom([]string{"", ", [5, 0]", ", [0, 5]", ", [5, 3]"}).Draw(t, "circles")
		return fmt.Sprintf("%s.box(d, [d.attributes['d'].y, d.attributes['d'].x], [%d, %d]%s)", of, side.Draw(t, "one side"), side.Draw(t, "other side"), circles)
	}))
	t.Logf("%+v", seen)
	require.Greater(t, seen.decided, 200)
	require.Greater(t, seen.infeasible, 300)
}

// TestBoxWithTooManyPlaces has numbers so far apart that a box has too many places. Then each side is checked alone.
func TestBoxWithTooManyPlaces(t *testing.T) {
	const n = 40
	var all []values
	for i := range n {
		// No two devices share a number on any axis.
		all = append(all, values{"x": i, "y": (i * 3) % n, "z": (i * 11) % n})
	}
	e := environment(t)
	text := width("x") + " <= 30 && " + width("y") + " <= 30 && " + width("z") + " <= 3"
	s := newSound(t, e, text, 2, devicesWith(all...))
	infeasible, _ := s.check(t, s.bounds(t), s.partial([]int{0}, upTo(n)[1:]), bound.Quick)
	require.False(t, infeasible)
	infeasible, _ = s.check(t, s.bounds(t), s.partial([]int{0, 35}, nil), bound.Quick)
	require.True(t, infeasible)
}

// TestBoxOfNumbersTooFarApart checks that a box works for some devices even if a distance overflows for other devices.
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

// TestSideWithTooManyPlaces has a single axis with too many places.
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
	p = s.partial([]int{2}, upTo(n)[3:])
	require.True(t, s.bounds(t).Infeasible(p, bound.Quick))
}

// ranked returns one device for each number, with the number in attribute x.
func ranked(numbers ...int64) []*device.Device {
	all := make([]values, len(numbers))
	for i, number := range numbers {
		all[i] = values{"x": number}
	}
	return devicesWith(all...)
}

// closeness returns an expression for the negated width, which is greater if the values are closer.
func closeness(attribute string) string {
	return fmt.Sprintf("devices.map(d, d.%[1]s).min() - devices.map(d, d.%[1]s).max()", attribute)
}

// TestSpansAreSound covers spans of numbers up to the extremes of int64, with limits around 0 and near these extremes.
func TestSpansAreSound(t *testing.T) {
	const least, most = math.MinInt64, math.MaxInt64
	devices := [][]*device.Device{
		ranked(0, 1, 2, 4, 7),
		ranked(3, 3, 3, 5),
		ranked(least, least+1, -1, 0),
		ranked(most, most-1, 0, 1),
		ranked(least, 0, most, most-1),
		ranked(-1, most-1, most-2, 1),
		devicesWith(values{"x": 0}, values{}, values{"x": 1}, values{"x": "text"}, values{"x": 5}),
	}
	soundWithLimits(t, []int64{least, least + 1, -1, 0, 1, 2, 3, most - 1, most}, devices, width("x"), closeness("x"))
}

// soundWithLimits checks each comparison of each quantity with each limit, in both orders, alone and negated.
func soundWithLimits(t *testing.T, limits []int64, devices [][]*device.Device, quantities ...string) {
	t.Helper()
	e := environment(t)
	for _, relation := range []string{"==", "!=", "<", "<=", ">", ">="} {
		for _, limit := range limits {
			for _, quantity := range quantities {
				for _, text := range []string{fmt.Sprintf("%s %s %d", quantity, relation, limit), fmt.Sprintf("%d %s %s", limit, relation, quantity)} {
					alone := compiled(t, e, text)
					negated := compiled(t, e, "!("+text+") || devices.exists(d, d.x == 0)")
					for _, all := range devices {
						soundOf(alone, 2, all).checkAll(t)
						soundOf(negated, 3, all).checkAll(t)
					}
				}
			}
		}
	}
}

// railed returns a device for each list of rails. An element may also be nil (no attribute) or a number (not a list).
func railed(all ...any) []*device.Device {
	result := make([]*device.Device, len(all))
	for i, rails := range all {
		d := &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"x": {IntValue: new(int64(i % 3))},
		}}
		switch rails := rails.(type) {
		case []int64:
			d.Attributes["rails"] = resourceapi.DeviceAttribute{IntValues: rails}
		case int:
			d.Attributes["rails"] = resourceapi.DeviceAttribute{IntValue: new(int64(rails))}
		}
		result[i] = device.New("d", d)
	}
	return result
}

const rails = "devices.map(d, d.attributes['d'].rails).flatten().distinct().size()"

func TestUnionsRemove(t *testing.T) {
	all := railed([]int64{0, 1}, []int64{0, 1}, []int64{1, 2}, []int64{2, 3}, []int64{0}, 1, []int64{4, 5})
	s := newSound(t, environment(t), rails+" <= 2", 3, all)
	_, propagated := s.check(t, s.bounds(t), s.partial([]int{0}, []int{1, 2, 3, 4, 5, 6}), bound.Thorough)
	require.Equal(t, []int{1, 4, 5}, positions(propagated.Domain))
	infeasible, _ := s.check(t, s.bounds(t), s.partial([]int{0, 2}, []int{1, 3}), bound.Quick)
	require.True(t, infeasible)
	s = newSound(t, environment(t), rails+" == 6", 3, all)
	infeasible, _ = s.check(t, s.bounds(t), s.partial([]int{4}, []int{0, 1, 5}), bound.Quick)
	require.True(t, infeasible)
}

func TestUnionsAreSound(t *testing.T) {
	e := environment(t)
	var texts []formula
	for _, text := range []string{
		rails + " <= 2", rails + " == 3", rails + " > 3", "!(" + rails + " <= 3)",
		"devices.filter(d, d.x != 1).map(d, d.attributes['d'].rails).flatten().distinct().size() <= 2",
		rails + " <= devices.size()", rails + " <= 2 || devices.all(d, d.x == 0)", rails + " % 2 == 0",
	} {
		texts = append(texts, compiled(t, e, text))
	}
	infeasible := 0
	cases.CheckN(t, cases.Of(400, 2000), func(rt *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(rt, "devices")
		all := make([]any, n)
		for i := range all {
			switch rapid.IntRange(0, 15).Draw(rt, "kind") {
			case 0: // missing
			case 1, 2:
				all[i] = rapid.IntRange(0, 4).Draw(rt, "rail")
			default:
				all[i] = rapid.SliceOfN(rapid.Int64Range(0, 4), 1, 3).Draw(rt, "rails")
			}
		}
		s := soundOf(rapid.SampledFrom(texts).Draw(rt, "text"), rapid.IntRange(1, min(n, 4)).Draw(rt, "size"), railed(all...))
		bounds := s.bounds(rt)
		for range 4 {
			if is, _ := s.check(rt, bounds, drawPartial(rt, s), bound.Thorough); is {
				infeasible++
			}
		}
	})
	require.Positive(t, infeasible)
}
