// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"

	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// spacing is a condition on the distances between neighbours in the sorted list of numbers. Each position has limits of its
// own:
//
//	cel.bind(s, devices.map(d, d.index).sort(), lists.range(3).all(i, s[i + 1] == s[i] + 1))
//
// A set is a subsequence of the possible devices sorted by number, and contains all chosen devices.
//
//  1. For each device, the possible positions follow from the devices before it. They are stored as a set of bits. Position k+1
//     is possible if a device at position k has an allowed distance and no chosen device lies between the two.
//  2. The same is computed from the other end.
//  3. If a position of a device is possible from both ends, some set contains the device. Other devices are removed.
//
// The cost is one step for each pair of devices at an allowed distance.
type spacing struct {
	leaf *propagate.Leaf
	// gaps[i] limits the distance between the numbers at positions i and i+1.
	gaps []outcome.Limits
	// general is the condition as written.
	general propagate.Condition
}

// anyGap allows any distance between two sorted numbers.
var anyGap = outcome.Limits{Least: 0, Most: outcome.Unlimited}

// newSpacing returns a condition on the distance between the members at positions place and place+1 of a sorted list.
func (b *Builder) newSpacing(order *propagate.Leaf, place int64, gap outcome.Limits, general propagate.Condition) propagate.Condition {
	n := &spacing{leaf: order, gaps: make([]outcome.Limits, b.SetSize-1), general: general}
	for i := range n.gaps {
		n.gaps[i] = anyGap
	}
	n.gaps[place] = outcome.Limits{Least: max(0, gap.Least), Most: gap.Most}
	return n
}

// joinSpacings returns one condition for two conditions on the same sorted list. It returns false for other conditions.
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
		if places, ok := newSortedPositions(s, n.leaf, n.gaps); ok {
			return outcome.Of(places.find())
		}
	}
	return n.general.Bound(s)
}

func (n *spacing) Propagate(s *propagate.State) propagate.Status {
	places, ok := newSortedPositions(s, n.leaf, n.gaps)
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
