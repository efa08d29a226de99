// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "github.com/celset/celset/cel/device/bitset"

// A stretch of a ring, with or without going over its end, is written so: all devices
// but one have their successor with them.
//
//	devices.exists_one(d, !devices.exists(o, follows(o, d)))
//	devices.filter(d, devices.exists(o, follows(o, d))).size() == devices.size() - 1
//
// If each device has at most one successor and is that of at most one, the devices form
// paths and circles, and so do those of them that are free. A set lacks one successor for
// each stretch of a path that is in it. So there is one stretch, and besides it nothing but
// whole circles.

// successors returns the predicate that tells whether one device follows another, and
// which of its variables stands for the follower, if the condition says that exactly one
// device of the set lacks a follower: or that all but one have one.
func (n generalCardinality) successors(size int) (follows *predicate, over int, ok bool) {
	lacks := n.holds
	if one := int64(size - 1); n.limits == (limits{one, one}) && size != 2 {
		lacks = n.fails
	} else if n.limits != (limits{1, 1}) {
		return nil, 0, false
	}
	c, isCardinality := lacks.(*cardinality)
	if !isCardinality || c.most != 0 || c.slot == n.slot {
		return nil, 0, false
	}
	p := c.predicate
	if len(p.slots) != maxArity || !p.speaksOf(n.slot) || !p.speaksOf(c.slot) {
		return nil, 0, false
	}
	if p.slots[1] == c.slot {
		over = 1
	}
	return p, over, true
}

// propagateChain removes what can't be in one stretch with the chosen devices, and requires
// what is in each that can. holds is false if there is no such stretch. done tells that
// there is nothing more to find out: without circles in the set each device that is left is
// in some stretch with all chosen ones.
func (n generalCardinality) propagateChain(s *state) (holds, done bool) {
	size := s.Chosen.Count() + s.Left
	follows, over, ok := n.successors(size)
	if !ok {
		return true, false
	}
	c := chains{state: s, size: size, all: s.borrow(s.Chosen), heads: s.borrow(s.Chosen), keep: s.borrow(s.Chosen)}
	defer func() { s.giveBack(c.all); s.giveBack(c.heads); s.giveBack(c.keep) }()
	c.all.Join(s.Domain)
	if !c.link(follows, over) {
		return true, false
	}
	holds = c.propagate()
	return holds, c.circling == 0
}

// chains are the paths and circles of all devices that are chosen or possible.
type chains struct {
	*state
	// size is that of a complete set.
	size int
	// all are the devices, heads those that follow none, keep those that are kept.
	all, heads, keep bitset.Set
	// next has the successor of each device, -1 if it has none.
	next []int
	// circling is the number of devices in circles that may be in the set as a whole.
	circling int
}

// link finds the successors. It is false if the devices don't form paths and circles.
func (c *chains) link(follows *predicate, over int) bool {
	c.next = c.numbers(len(c.tables.devices))
	c.heads.SetTo(c.all)
	made := follows.rowsOver(c.state, over)
	for d := range c.all.All() {
		r := made.at(d)
		if r == nil {
			r = follows.rowAt(c.state, over, d)
		}
		successor, ok := r.yes.OnlyAnd(c.all)
		if !r.exact || !ok || !c.spend() {
			return false
		}
		c.next[d] = successor
		if successor < 0 {
			continue
		}
		if !c.heads.Has(successor) {
			return false
		}
		c.heads.Remove(successor)
	}
	return true
}

// path is one of the paths, or a circle that is too long to be in the set as a whole: such
// a one has a stretch or nothing in the set. first and last are the places of the chosen
// devices, -1 if there are none. Those of a circle start at a chosen device, if it has one.
type path struct {
	head, length, first, last int
	circular                  bool
}

// pathFrom follows the successors from the head to the end, or back to the head.
func (c *chains) pathFrom(head int) path {
	p := path{head: head, first: -1, last: -1}
	for d := head; d >= 0; d = c.next[d] {
		if d == head && p.length > 0 {
			p.circular = true
			break
		}
		if c.Chosen.Has(d) {
			if p.first < 0 {
				p.first = p.length
			}
			p.last = p.length
		}
		p.length++
	}
	return p
}

// longest is the length of the longest stretch. If all of a circle is in the set nothing
// lacks a successor.
func (p path) longest() int {
	if p.circular {
		return p.length - 1
	}
	return p.length
}

// propagate looks for the path that has the stretch. If some of it is chosen it is that one.
func (c *chains) propagate() bool {
	c.findPaths()
	touched := path{head: -1}
	for _, p := range c.paths {
		switch {
		case p.first >= 0 && touched.head >= 0:
			return false
		case p.first >= 0:
			touched = p
		}
	}
	c.keep.SetTo(c.all)
	for _, p := range c.paths {
		if touched.head >= 0 && p.head != touched.head || p.longest()+c.circling < c.size {
			c.removePath(c.keep, p)
		}
	}
	switch {
	case touched.head < 0:
	case touched.longest()+c.circling < c.size:
		return false
	case touched.circular:
		if !c.narrowCircle(touched) {
			return false
		}
	case touched.last-touched.first >= c.size:
		return false
	default:
		c.narrow(touched)
	}
	if c.Left > 0 {
		c.state.keep(c.keep)
		c.requireCommon(touched)
	}
	return c.Left >= 0
}

// findPaths follows the heads, and counts what is in circles that fit into the set. Of those
// that don't a device becomes the head: a chosen one if there is one.
func (c *chains) findPaths() {
	c.paths = c.paths[:0]
	inPaths := 0
	for head := range c.heads.All() {
		p := c.pathFrom(head)
		c.paths = append(c.paths, p)
		inPaths += p.length
	}
	if inPaths == c.all.Count() {
		return
	}
	rest := c.borrow(c.all)
	defer c.giveBack(rest)
	for _, p := range c.paths {
		c.removePath(rest, p)
	}
	// What is in a path is removed on the way, so the rest is looked at as it is.
	for head := rest.Next(0); head >= 0; head = rest.Next(head + 1) {
		p := c.pathFrom(head)
		c.removePath(rest, p)
		if p.length < c.size {
			c.circling += p.length
			continue
		}
		for range p.first {
			p.head = c.next[p.head]
		}
		if p.first > 0 {
			p.first, p.last = 0, p.last-p.first
		}
		c.paths = append(c.paths, p)
	}
}

// removePath removes the devices of a path from a set.
func (c *chains) removePath(from bitset.Set, p path) {
	d := p.head
	for range p.length {
		from.Remove(d)
		d = c.next[d]
	}
}

// narrow drops what is too far from the chosen devices of the path.
func (c *chains) narrow(p path) {
	place := 0
	for d := p.head; d >= 0; d = c.next[d] {
		if place <= p.last-c.size || place >= p.first+c.size {
			c.keep.Remove(d)
		}
		place++
	}
}

// requireCommon requires what is in all stretches that have the chosen devices of the path:
// what is between them, and more where the path has not enough room on one side. A circle
// that is in the set as a whole may stand in for any device but those between.
func (c *chains) requireCommon(p path) {
	if c.hypothetical || p.first < 0 || p.circular {
		return
	}
	from, to := p.first, p.last
	if c.circling == 0 {
		from, to = min(p.first, p.length-c.size), max(p.last, c.size-1)
	}
	common := c.borrow(c.all)
	defer c.giveBack(common)
	common.Clear()
	place := 0
	for d := p.head; d >= 0; d = c.next[d] {
		if place >= from && place <= to && c.Domain.Has(d) {
			common.Add(d)
		}
		place++
	}
	if !common.IsEmpty() {
		c.require(common)
	}
}
