// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"

	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// spacing is a condition on the distances of numbers that follow each other when they are sorted, by their places:
//
//	cel.bind(s, devices.map(d, d.index).sort(), lists.range(3).all(i, s[i + 1] == s[i] + 1))
//
// A set is a subsequence of the possible devices in the order of their numbers, and has all chosen ones.
//
//  1. The places that a device may have are found from those of the devices before, as a set of bits: place k+1, if a device at place
//     k is at a right distance and no chosen device is passed over.
//  2. The same is done from the other end.
//  3. What has a place from both ends is in a set. Other devices are removed.
//
// The cost is a look at each pair of devices at a right distance.
type spacing struct {
	leaf *propagate.Leaf
	// gaps are the distances of the numbers at each place and the next one.
	gaps []outcome.Limits
	// general is the condition as it is written.
	general propagate.Condition
}

// anyGap is the distance of two numbers in order.
var anyGap = outcome.Limits{Least: 0, Most: outcome.Unlimited}

// newSpacing is the condition for two members of a sorted list that follow each other.
func (b *Builder) newSpacing(order *propagate.Leaf, place int64, gap outcome.Limits, general propagate.Condition) propagate.Condition {
	n := &spacing{leaf: order, gaps: make([]outcome.Limits, b.SetSize-1), general: general}
	for i := range n.gaps {
		n.gaps[i] = anyGap
	}
	n.gaps[place] = outcome.Limits{Least: max(0, gap.Least), Most: gap.Most}
	return n
}

// joinSpacings makes one condition of two on the same sorted list. It is false for anything else.
func joinSpacings(left, right propagate.Condition) (propagate.Condition, bool) {
	l, ok := left.(*spacing)
	r, too := right.(*spacing)
	if !ok || !too || l.leaf != r.leaf {
		return nil, false
	}
	joined := &spacing{leaf: l.leaf, gaps: slices.Clone(l.gaps), general: and{l.general, r.general}}
	for i, gap := range r.gaps {
		joined.gaps[i] = outcome.Limits{Least: max(gap.Least, l.gaps[i].Least), Most: min(gap.Most, l.gaps[i].Most)}
	}
	return joined, true
}

func (n *spacing) Bound(s *propagate.State) outcome.Outcome {
	if s.Left == 0 {
		if places, ok := newSortedPlaces(s, n.leaf, n.gaps); ok {
			return outcome.Of(places.find())
		}
	}
	return n.general.Bound(s)
}

func (n *spacing) Propagate(s *propagate.State) propagate.Status {
	places, ok := newSortedPlaces(s, n.leaf, n.gaps)
	if !ok {
		return s.Propagate(n.general)
	}
	possible := places.find()
	switch {
	case !possible:
		return propagate.Failed
	case s.Left == 0:
		return propagate.Subsumed
	}
	for i, device := range places.order {
		if places.before[i].meets(places.behind[i]) || s.Chosen.Has(int(device)) {
			continue
		}
		s.Remove(int(device))
	}
	return propagate.NoFix
}
