// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// stretches is a condition on the number of devices that have no successor in the set:
//
//	devices.filter(d, !devices.exists(o, follows(o, d))).size() == 1
//	devices.filter(d, devices.exists(o, follows(o, d))).size() == devices.size() - 1
//
// The successors form a graph of all devices that are chosen or possible. If each device has at most one successor,
// and is the successor of at most one, the graph consists of paths and circles ([successors]). A set lacks one
// successor for each stretch of a path that is in it. A circle that is in the set as a whole lacks none.
//
// With at most one device that lacks a successor, a set is one stretch, and any number of whole circles:
//
//  1. The chosen devices must be in one path, at a distance that the stretch can span.
//  2. What is too far from the chosen devices, or in a path that is too short, is removed.
//  3. What lies between the chosen devices is required.
//
// If no circle fits into the set, each device that is left is in some stretch with all chosen devices. The cost is a look at
// each device. Other numbers, and other graphs, are left to [generalCardinality].
type stretches struct {
	// follows holds for a device and its successor, and over is the place of the successor's variable.
	follows *predicate
	over    int
	// lacking reports whether the limits are for the devices without successor, or for those with one.
	lacking bool
	limits
	// general is the condition as it is written, for other graphs and numbers.
	general condition
}

// newStretches recognizes a count of the devices that have, or lack, a successor. It is general if there are none.
func newStretches(slot int, holds, fails condition, l limits, general condition) condition {
	for _, lacking := range [2]bool{true, false} {
		of := holds
		if !lacking {
			of = fails
		}
		c, ok := of.(*cardinality)
		if !ok || c.most != 0 || c.slot == slot {
			continue
		}
		if over, ok := successorOf(c.predicate, slot, c.slot); ok {
			return stretches{c.predicate, over, lacking, l, general}
		}
	}
	return general
}

// newPairs recognizes a count of pairs of a device and its successor, as the sum of one number for each device. It is general for
// anything else.
func newPairs(of total, l limits, general condition) condition {
	number, ok := of.value.(size)
	if _, all := of.list.(allDevices); !ok || !all {
		return general
	}
	if p, slot, ok := predicateOver(number.list, 0, nil); ok {
		if over, ok := successorOf(p, of.slot, slot); ok {
			return stretches{p, over, false, l, general}
		}
	}
	return general
}

// newFirst recognizes that all devices but the one with the least, or the greatest, value have another one with them:
//
//	cel.bind(least, devices.map(d, d.index).min(), devices.all(d, d.index == least || devices.exists(o, follows(d, o))))
//
// It is false for anything else.
func newFirst(slot int, holds, general condition) (condition, bool) {
	either, ok := holds.(or)
	if !ok {
		return nil, false
	}
	for _, sides := range [2][2]condition{{either.left, either.right}, {either.right, either.left}} {
		is, ok := sides[0].(comparison)
		c, too := sides[1].(*cardinality)
		if !ok || !too || is.relation != equal || c.limits != (limits{1, unlimited}) || c.slot == slot {
			continue
		}
		leaf, ok := isExtreme(slot, is.left, is.right)
		if !ok {
			leaf, ok = isExtreme(slot, is.right, is.left)
		}
		over, too := successorOf(c.predicate, slot, c.slot)
		if ok && too {
			return assuming{different{leaf}, stretches{c.predicate, over, true, limits{0, 1}, general}, general}, true
		}
	}
	return nil, false
}

// isExtreme recognizes a value of the device in the slot, and the greatest or smallest one of all devices.
func isExtreme(slot int, own, of quantity) (*leaf, bool) {
	v, ok := own.(value)
	g, too := of.(greatest)
	if !ok || !too || !v.isColumn(slot) {
		return nil, false
	}
	leaf, ok := g.column()
	return leaf, ok && leaf == v.leaf
}

// successorOf returns the place of the successor's variable in a predicate of a device and its successor.
func successorOf(p *predicate, device, successor int) (over int, ok bool) {
	if len(p.slots) != maxArity || !p.speaksOf(device) || !p.speaksOf(successor) || device == successor {
		return 0, false
	}
	return slices.Index(p.slots, successor), true
}

func (n stretches) bound(s *state) Outcome { return n.general.bound(s) }

func (n stretches) negation() condition { return newNot(n.general) }

// ends are the numbers of devices without successor that are right for a set of the size.
func (n stretches) ends(size int) limits {
	if n.lacking {
		return n.limits
	}
	with := n.negate()
	return limits{saturated(with.least, int64(size)), saturated(with.most, int64(size))}
}

func (n stretches) propagate(s *state) status {
	size := s.Chosen.Count() + s.Left
	ends := n.ends(size)
	if s.Left <= 0 || ends.most != 1 || ends.least > 1 {
		return s.propagate(n.general)
	}
	g := s.successors()
	g.size, g.mayBeCircle = size, ends.least <= 0
	g.all.SetTo(s.Chosen)
	g.all.Join(s.Domain)
	if !g.link(n.follows, n.over) {
		return s.propagate(n.general)
	}
	switch {
	case !g.propagate():
		return failed
	case g.circling > 0:
		return s.propagate(n.general)
	default:
		return noFix
	}
}

// successors is the graph of the devices that are chosen or possible, and their successors.
type successors struct {
	*state
	// size is that of a complete set. mayBeCircle: a set may be a circle as a whole.
	size        int
	mayBeCircle bool

	// Step 1, link: all devices, heads, which follow no device, and the successor of each device, or -1.
	all, heads bitset.Set
	next       []int

	// Step 2, findPaths: the paths, and the number of devices in circles that may be in the set as a whole.
	paths    []path
	circling int

	// Step 3, propagate: the devices that are kept.
	keep bitset.Set
}

// successors returns memory for a graph, until it is called again.
func (s *state) successors() *successors {
	if s.spareSuccessors == nil {
		n := len(s.tables.devices)
		sets := bitset.NewList(3, n)
		s.spareSuccessors = &successors{state: s, all: sets.At(0), heads: sets.At(1), keep: sets.At(2), next: make([]int, n)}
	}
	return s.spareSuccessors
}

// link finds the successors. It is false if the devices don't form paths and circles.
func (g *successors) link(follows *predicate, over int) bool {
	g.heads.SetTo(g.all)
	made := follows.rowsOver(g.state, over)
	for d := range g.all.All() {
		r := made.at(d)
		if r == nil {
			r = follows.rowAt(g.state, over, d)
		}
		if !g.spend() || !r.isExact(g.all) {
			return false
		}
		g.next[d] = -1
		switch r.yes.CountAnd(g.all) {
		case 0:
			continue
		case 1:
		default:
			return false
		}
		for successor := r.yes.Next(0); ; successor = r.yes.Next(successor + 1) {
			if g.all.Has(successor) {
				g.next[d] = successor
				break
			}
		}
		if !g.heads.Has(g.next[d]) {
			return false
		}
		g.heads.Remove(g.next[d])
	}
	return true
}

// path is a path, or a circle that may not be in the set as a whole: some of its devices are not in the set. first
// and last are the places of the chosen devices, or -1. A circle begins at a chosen device, if it has one.
type path struct {
	head, length, first, last int
	circular                  bool
}

// pathFrom follows the successors from the head to the end, or back to the head.
func (g *successors) pathFrom(head int) path {
	p := path{head: head, first: -1, last: -1}
	for d := head; d >= 0; d = g.next[d] {
		if d == head && p.length > 0 {
			p.circular = true
			break
		}
		if g.Chosen.Has(d) {
			if p.first < 0 {
				p.first = p.length
			}
			p.last = p.length
		}
		p.length++
	}
	return p
}

// longest is the length of the longest stretch. In a circle one device at least is left out.
func (p path) longest() int {
	if p.circular {
		return p.length - 1
	}
	return p.length
}

// propagate looks for the path that has the stretch. It is false if there is none.
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
	g.state.keep(g.keep)
	g.requireCommon(touched)
	return g.Left >= 0
}

// findPaths follows the heads, and counts what is in circles that fit into the set. What is left are circles that don't.
func (g *successors) findPaths() {
	g.paths, g.circling = g.paths[:0], 0
	rest := g.borrow(g.all)
	defer g.giveBack(rest)
	for head := range g.heads.All() {
		p := g.pathFrom(head)
		g.paths = append(g.paths, p)
		g.removePath(rest, p)
	}
	// What is in a circle is removed on the way, so the rest is looked at as it is.
	for head := rest.Next(0); head >= 0; head = rest.Next(head + 1) {
		p := g.pathFrom(head)
		g.removePath(rest, p)
		if p.length < g.size || p.length == g.size && g.mayBeCircle {
			g.circling += p.length
			continue
		}
		for range p.first {
			p.head = g.next[p.head]
		}
		if p.first > 0 {
			p.first, p.last = 0, p.last-p.first
		}
		g.paths = append(g.paths, p)
	}
}

// removePath removes the devices of a path from a set.
func (g *successors) removePath(from bitset.Set, p path) {
	d := p.head
	for range p.length {
		from.Remove(d)
		d = g.next[d]
	}
}

// narrow drops what is too far from the chosen devices of the path.
func (g *successors) narrow(p path) {
	place := 0
	for d := p.head; d >= 0; d = g.next[d] {
		if place <= p.last-g.size || place >= p.first+g.size {
			g.keep.Remove(d)
		}
		place++
	}
}

// requireCommon requires what is in all stretches that have the chosen devices of the path: what is between the chosen devices,
// and more where the path is short on one side. A circle that is in the set as a whole may stand in for any device but those
// between.
func (g *successors) requireCommon(p path) {
	if g.hypothetical || p.first < 0 || p.circular {
		return
	}
	from, to := p.first, p.last
	if g.circling == 0 {
		from, to = min(p.first, p.length-g.size), max(p.last, g.size-1)
	}
	common := g.borrow(g.all)
	defer g.giveBack(common)
	common.Clear()
	place := 0
	for d := p.head; d >= 0; d = g.next[d] {
		if place >= from && place <= to && g.Domain.Has(d) {
			common.Add(d)
		}
		place++
	}
	if !common.IsEmpty() {
		g.require(common)
	}
}
