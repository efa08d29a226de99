// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"cmp"
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// order has the devices by the number that a leaf is for them.
type order struct {
	// ints are the devices for which it is a number.
	ints bitset.Set
	// values are these numbers, ascending, each once; upTo has for each of them the
	// devices with that number or a smaller one.
	values []int64
	upTo   []bitset.Set
}

func newOrder(entries []entry) order {
	o := order{ints: bitset.New(len(entries))}
	var devices []int
	for i := range entries {
		if number := entries[i].number; !number.open && !number.isNever() {
			o.ints.Add(i)
			devices = append(devices, i)
		}
	}
	slices.SortStableFunc(devices, func(i, j int) int { return cmp.Compare(entries[i].number.least, entries[j].number.least) })
	for _, i := range devices {
		value := entries[i].number.least
		if n := len(o.values); n == 0 || o.values[n-1] != value {
			next := bitset.New(len(entries))
			if n > 0 {
				next.SetTo(o.upTo[n-1])
			}
			o.values, o.upTo = append(o.values, value), append(o.upTo, next)
		}
		o.upTo[len(o.upTo)-1].Add(i)
	}
	return o
}

// has tells whether there is a number for all devices of the set.
func (o *order) has(devices bitset.Set) bool { return devices.IsWithin(o.ints) }

// least is the place in values of the smallest number of the devices, of which there
// is at least one.
func (o *order) least(devices bitset.Set) int {
	place := 0
	for !devices.Meets(o.upTo[place]) {
		place++
	}
	return place
}

// most is the place in values of the greatest number of the devices, of which there
// is at least one.
func (o *order) most(devices bitset.Set) int {
	place := len(o.values) - 1
	for place > 0 && !o.isAbove(devices, place-1) {
		place--
	}
	return place
}

// isAbove tells whether one of the devices has a number greater than that at the
// place.
func (o *order) isAbove(devices bitset.Set, place int) bool {
	return !devices.IsWithin(o.upTo[place])
}

// keepBetween removes the devices whose number is below least or above most from a
// set, and tells whether there were any. All of its devices have a number.
func (o *order) keepBetween(devices bitset.Set, least, most int64) (removed bool) {
	below, _ := slices.BinarySearch(o.values, least)
	if below > 0 {
		removed = devices.Drop(o.upTo[below-1])
	}
	upTo, found := slices.BinarySearch(o.values, most)
	if !found {
		upTo--
	}
	if upTo < 0 {
		removed = !devices.IsEmpty() || removed
		devices.Clear()
		return removed
	}
	return devices.Keep(o.upTo[upTo]) || removed
}
