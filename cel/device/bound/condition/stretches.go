// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"

	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// stretches is a condition on the number of devices without a successor in the set:
//
//	devices.filter(d, !devices.exists(o, follows(o, d))).size() == 1
//	devices.filter(d, devices.exists(o, follows(o, d))).size() == devices.size() - 1
//
// The successors form a graph of all chosen and possible devices. If each device has at most one successor and at most one
// predecessor, the graph consists of paths and circles ([successors]). A stretch is a run of devices of the set that follow each
// other. Its last device lacks its successor. In a whole circle no device lacks its successor.
//
// If at most one device may lack its successor, a set is one stretch and any number of whole circles:
//
// 1. All chosen devices must be in one path, and near enough to each other for one stretch.
// 2. Propagate removes devices too far from the chosen devices, and devices of paths that are too short.
// 3. Propagate requires the devices between the chosen devices.
//
// If no circle fits into the set, each remaining device is in a stretch with all chosen devices, so no further device can be
// removed. Each device is visited once. [generalCardinality] handles other limits and graphs.
type stretches struct {
	// follows is the relation between a device and its successor. over is the index of the successor's variable.
	follows *propagate.Predicate
	over    int
	// lacking means that the limits count the devices without a successor. Otherwise they count the devices with a successor.
	lacking bool
	outcome.Limits
	// general is the condition as written. It replaces stretches for other graphs and limits.
	general propagate.Condition
}

// newStretches recognizes a count of the devices that have or lack a successor. It returns general for other counts.
func newStretches(slot int, holds, fails propagate.Condition, l outcome.Limits, general propagate.Condition) propagate.Condition {
	for _, lacking := range [2]bool{true, false} {
		of := holds
		if !lacking {
			of = fails
		}
		c, ok := of.(*cardinality)
		if !ok || c.Most != 0 || c.slot == slot {
			continue
		}
		if over, ok := successorOf(c.predicate, slot, c.slot); ok {
			return stretches{c.predicate, over, lacking, l, general}
		}
	}
	return general
}

// newPairs recognizes the number of pairs of a device and its successor, written as a sum over devices. It returns general for
// other sums.
func newPairs(of total, l outcome.Limits, general propagate.Condition) propagate.Condition {
	number, ok := of.Value.(size)
	if _, all := of.List.(AllDevices); !ok || !all {
		return general
	}
	if p, slot, ok := predicateOver(number.list, 0, nil); ok {
		if over, ok := successorOf(p, of.Slot, slot); ok {
			return stretches{p, over, false, l, general}
		}
	}
	return general
}

// newFirst recognizes that each device, except the device with the least or greatest value, follows another device of the set:
//
//	cel.bind(least, devices.map(d, d.index).min(), devices.all(d, d.index == least || devices.exists(o, follows(d, o))))
//
// It returns false for other conditions.
func newFirst(slot int, holds, general propagate.Condition) (propagate.Condition, bool) {
	either, ok := holds.(or)
	if !ok {
		return nil, false
	}
	for _, sides := range [2][2]propagate.Condition{{either.left, either.right}, {either.right, either.left}} {
		is, ok := sides[0].(Comparison)
		c, too := sides[1].(*cardinality)
		if !ok || !too || is.Relation != outcome.Equal || c.Limits != (outcome.Limits{Least: 1, Most: outcome.Unlimited}) || c.slot == slot {
			continue
		}
		leaf, ok := isExtreme(slot, is.Left, is.Right)
		if !ok {
			leaf, ok = isExtreme(slot, is.Right, is.Left)
		}
		over, too := successorOf(c.predicate, slot, c.slot)
		if ok && too {
			return assuming{different{leaf}, stretches{c.predicate, over, true, outcome.Limits{Least: 0, Most: 1}, general}, general}, true
		}
	}
	return nil, false
}

// isExtreme recognizes that own is a value of the device in the slot, and of is the greatest or smallest of these values over
// all devices.
func isExtreme(slot int, own, of propagate.Quantity) (*propagate.Leaf, bool) {
	v, ok := own.(propagate.Value)
	g, too := of.(greatest)
	if !ok || !too || !v.IsColumn(slot) {
		return nil, false
	}
	leaf, ok := g.Column()
	return leaf, ok && leaf == v.Leaf
}

// successorOf returns the index of the successor's variable in a predicate on a device and its successor.
func successorOf(p *propagate.Predicate, device, successor int) (over int, ok bool) {
	if len(p.Slots) != propagate.MaxArity || !p.HasVariable(device) || !p.HasVariable(successor) || device == successor {
		return 0, false
	}
	return slices.Index(p.Slots, successor), true
}

func (n stretches) Bound(s *propagate.State) outcome.Outcome { return n.general.Bound(s) }
func (n stretches) Negation() propagate.Condition            { return NewNot(n.general) }

// ends returns the limits for the number of devices without a successor, in a set of the given size.
func (n stretches) ends(size int) outcome.Limits {
	if n.lacking {
		return n.Limits
	}
	with := n.Negate()
	return outcome.Limits{Least: outcome.Saturated(with.Least, int64(size)), Most: outcome.Saturated(with.Most, int64(size))}
}

func (n stretches) Propagate(s *propagate.State) propagate.Status {
	size := s.Chosen.Count() + s.Left
	ends := n.ends(size)
	if s.Left <= 0 || ends.Most != 1 || ends.Least > 1 {
		return s.Propagate(n.general)
	}
	g := successorsOf(s)
	g.size, g.mayBeCircle = size, ends.Least <= 0
	g.all.SetTo(s.Chosen)
	g.all.Join(s.Domain)
	if !g.link(n.follows, n.over) {
		return s.Propagate(n.general)
	}
	switch {
	case !g.propagate():
		return propagate.Failed
	case g.circling > 0:
		return s.Propagate(n.general)
	default:
		return propagate.NoFix
	}
}

// propagate finds the path with the chosen devices, and removes and requires devices. It returns false if no stretch is
// possible.
func (g *successors) propagate() bool {
	g.findPaths()
	touched := path{head: -1}
	for _, p := range g.paths {
		switch {
		case p.first >= 0 && touched.head >= 0:
			return false
		case p.first >= 0:
			touched = p
		}
	}
	g.keep.SetTo(g.all)
	for _, p := range g.paths {
		if touched.head >= 0 && p.head != touched.head || p.longest()+g.circling < g.size {
			g.removePath(g.keep, p)
		}
	}
	switch {
	case touched.head < 0:
	case touched.longest()+g.circling < g.size:
		return false
	case touched.circular:
		if !g.narrowCircle(touched) {
			return false
		}
	case touched.last-touched.first >= g.size:
		return false
	default:
		g.narrow(touched)
	}
	g.Keep(g.keep)
	g.requireCommon(touched)
	return g.Left >= 0
}

// narrow keeps only the devices of the path that are near enough to its chosen devices.
func (g *successors) narrow(p path) {
	place := 0
	for d := p.head; d >= 0; d = g.next[d] {
		if place <= p.last-g.size || place >= p.first+g.size {
			g.keep.Remove(d)
		}
		place++
	}
}

// requireCommon requires the devices that are in every stretch with the chosen devices of the path: the devices between the
// chosen ones, and more if the path is short on one side. A whole circle in the set can replace any device that is not between
// chosen devices.
func (g *successors) requireCommon(p path) {
	if g.Hypothetical || p.first < 0 || p.circular {
		return
	}
	from, to := p.first, p.last
	if g.circling == 0 {
		from, to = min(p.first, p.length-g.size), max(p.last, g.size-1)
	}
	common := g.Borrow(g.all)
	defer g.GiveBack(common)
	common.Clear()
	place := 0
	for d := p.head; d >= 0; d = g.next[d] {
		if place >= from && place <= to && g.Domain.Has(d) {
			common.Add(d)
		}
		place++
	}
	if !common.IsEmpty() {
		g.Require(common)
	}
}
