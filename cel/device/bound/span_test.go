// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/celset/celset/cel/device"
)

// ranked are devices with the numbers in the attribute x.
func ranked(numbers ...int64) []*device.Device {
	all := make([]values, len(numbers))
	for i, number := range numbers {
		all[i] = values{"x": number}
	}
	return devicesWith(all...)
}

// closeness is width with the other sign.
func closeness(attribute string) string {
	return fmt.Sprintf("devices.map(d, d.%[1]s).min() - devices.map(d, d.%[1]s).max()", attribute)
}

// Comparisons with every limit that is interesting, over numbers that go to the
// extremes of an int64.
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

// soundWithLimits compares quantities with each limit, in both orders, alone and negated.
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
