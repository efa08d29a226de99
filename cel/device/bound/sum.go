// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "github.com/celset/celset/cel/device/bitset"

// sumLimits is a condition on the sum of a number of each device in the set.
//
//	devices.map(d, memory(d)).sum() >= 640
//
// What a set can come to at most is what the chosen devices have and the greatest numbers of those
// that are possible. A device is possible if the sum with it can.
type sumLimits struct {
	leaf *leaf
	limits
	// general is the condition as it is written, for leaves that are not always
	// numbers.
	general condition
}

func (n sumLimits) negation() condition { return newNot(n.general) }

func (n sumLimits) bound(s *state) Outcome {
	t, ok := n.sums(s)
	if !ok {
		return n.general.bound(s)
	}
	return n.verdict(t.least, t.most)
}

// propagate removes the devices that make the sum too small or too large, whatever else is chosen.
func (n sumLimits) propagate(s *state) bool {
	t, ok := n.sums(s)
	if !ok {
		return s.propagate(n.general)
	}
	if n.verdict(t.least, t.most) == False {
		return false
	}
	if s.Left > 0 {
		lowest, highest := int64(unlimitedBelow), int64(unlimited)
		if n.least != unlimitedBelow {
			lowest = saturated(n.least, t.smallest-t.most)
		}
		if n.most != unlimited {
			highest = saturated(n.most, t.greatest-t.least)
		}
		s.removed = t.order.keepBetween(s.Domain, lowest, highest) || s.removed
	}
	return true
}

// sums are the bounds of a sum.
type sums struct {
	order       *order
	least, most int64
	// smallest is the smallest number of those that most has of possible devices, greatest the
	// greatest of those that least has.
	smallest, greatest int64
}

// sums are those of the partial set. ok is false if some device has no number, or a sum could be more than
// an int64 has room for.
func (n sumLimits) sums(s *state) (t sums, ok bool) {
	c := s.column(n.leaf)
	if c == nil || !c.order.has(s.Chosen) || s.Left < 0 || s.Domain.Count() < s.Left || s.Left > 0 && !c.order.has(s.Domain) {
		return t, false
	}
	o := &c.order
	if !o.canAdd(s.Chosen.Count() + s.Left) {
		return t, false
	}
	chosen, _ := o.sumOfLeast(s.Chosen, s.Chosen.Count())
	t = sums{order: o, least: chosen, most: chosen}
	least, greatest := o.sumOfLeast(s.Domain, s.Left)
	most, smallest := o.sumOfMost(s.Domain, s.Left)
	t.least, t.most, t.smallest, t.greatest = t.least+least, t.most+most, smallest, greatest
	return t, true
}

// canAdd tells whether so many of the values, and one more, can be added.
func (o *order) canAdd(count int) bool {
	if len(o.values) == 0 {
		return count == 0
	}
	for _, value := range [2]int64{o.values[0], o.values[len(o.values)-1]} {
		if _, ok := multiply(value, 4*(int64(count)+1)); !ok {
			return false
		}
	}
	return true
}

// sumOfLeast adds the smallest numbers of so many of the devices, and returns the greatest of them, too.
func (o *order) sumOfLeast(devices bitset.Set, count int) (sum, greatest int64) {
	before := 0
	for place := 0; count > before; place++ {
		upTo := min(count, devices.CountAnd(o.upTo[place]))
		if upTo > before {
			sum += int64(upTo-before) * o.values[place]
			greatest = o.values[place]
		}
		before = upTo
	}
	return sum, greatest
}

// sumOfMost adds the greatest numbers of so many of the devices, and returns the smallest of them, too.
func (o *order) sumOfMost(devices bitset.Set, count int) (sum, smallest int64) {
	// Of those in order all but so many are taken.
	left := devices.Count() - count
	until := devices.Count()
	for place := len(o.values) - 1; until > left; place-- {
		below := 0
		if place > 0 {
			below = devices.CountAnd(o.upTo[place-1])
		}
		if below = max(below, left); until > below {
			sum += int64(until-below) * o.values[place]
			smallest = o.values[place]
		}
		until = below
	}
	return sum, smallest
}
