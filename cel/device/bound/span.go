// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "github.com/celset/celset/cel/device/bitset"

// span is a condition on the distance between the greatest and the smallest number of
// the devices in the set: the side of a bounding box.
//
//	devices.map(d, row(d)).max() - devices.map(d, row(d)).min() == 3
type span struct {
	leaf *leaf
	limits
	// general is the condition as it is written, for leaves that are not always
	// numbers.
	general condition
}

func (n span) bound(s *state) Outcome {
	if distance, ok := n.distance(s); ok {
		return n.verdict(distance, distance)
	}
	return n.general.bound(s)
}

// distance is that of a complete set of numbers. ok is false also for a distance that is
// as large as an int64 can be: limits can't tell whether it is too small.
func (n span) distance(s *state) (distance int64, ok bool) {
	if s.Left > 0 || s.Chosen.IsEmpty() {
		return 0, false
	}
	c := s.column(n.leaf)
	if c == nil || !c.order.isBounded() || !c.order.has(s.Chosen) {
		return 0, false
	}
	distance = c.order.reach(s.Chosen)
	return distance, distance < unlimited
}

// propagate removes the devices that would make the distance too large.
func (n span) propagate(s *state) status {
	c := s.column(n.leaf)
	if c == nil || !c.order.isBounded() || !c.order.has(s.Chosen) || !c.order.has(s.Domain) {
		return s.propagate(n.general)
	}
	o := &c.order
	all := s.borrow(s.Chosen)
	defer s.giveBack(all)
	if !s.Chosen.IsEmpty() {
		least, most := o.values[o.least(s.Chosen)], o.values[o.most(s.Chosen)]
		if most-least > n.most {
			return failed
		}
		if s.Left > 0 {
			s.removed = o.keepBetween(s.Domain, n.lowest(most), saturated(least, n.most)) || s.removed
		}
	}
	if s.Left > 0 {
		all.Join(s.Domain)
	}
	if !all.IsEmpty() && o.reach(all) < n.least {
		return failed
	}
	return noFix
}

// reach is the distance of the greatest and the smallest number of the devices, of which
// there is at least one.
func (o *order) reach(devices bitset.Set) int64 {
	return o.values[o.most(devices)] - o.values[o.least(devices)]
}

// isBounded tells whether the distance of any two values can be computed.
func (o *order) isBounded() bool {
	if len(o.values) == 0 {
		return false
	}
	_, ok := subtract(o.values[len(o.values)-1], o.values[0])
	return ok
}

// lowest is the smallest number that may stand beside the greatest one.
func (n span) lowest(greatest int64) int64 {
	if n.most == unlimited {
		return unlimitedBelow
	}
	return saturated(greatest, -n.most)
}
