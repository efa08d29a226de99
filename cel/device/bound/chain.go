// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

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
func (n tallied) successors(size int) (follows *predicate, over int, ok bool) {
	lacks := n.holds
	if one := int64(size - 1); n.limits == (limits{one, one}) && size != 2 {
		lacks = n.fails
	} else if n.limits != (limits{1, 1}) {
		return nil, 0, false
	}
	c, isCounted := lacks.(*counted)
	if !isCounted || c.most != 0 || c.slot == n.slot {
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

// refineChain removes what can't be in one stretch with the chosen devices, and requires
// what is between them. It is false if there is no such stretch.
func (n tallied) refineChain(s *state) bool {
	size := s.Chosen.Count() + s.Left
	follows, over, ok := n.successors(size)
	if !ok {
		return true
	}
	c := chains{state: s, size: size, all: s.borrow(s.Chosen), heads: s.borrow(s.Chosen), keep: s.borrow(s.Chosen)}
	defer func() { s.giveBack(c.all); s.giveBack(c.heads); s.giveBack(c.keep) }()
	c.all.Join(s.Possible)
	return !c.link(follows, over) || c.refine()
}

// chains are the paths and circles of all devices that are chosen or possible.
type chains struct {
	*state
	// size is that of a complete set.
	size int
	// all are the devices, heads those that follow none, keep those that are kept.
	all, heads, keep Bits
	// next has the successor of each device, -1 if it has none.
	next []int
	// circling is the number of devices in circles.
	circling int
}

// link finds the successors. It is false if the devices don't form paths and circles.
func (c *chains) link(follows *predicate, over int) bool {
	c.next = c.numbers(len(c.tables.devices))
	c.heads.Set(c.all)
	for d := c.all.Next(0); d >= 0; d = c.all.Next(d + 1) {
		r := follows.rowAt(c.state, over, d)
		count := r.yes.CountAnd(c.all)
		if !r.exact || count > 1 || !c.spend() {
			return false
		}
		c.next[d] = -1
		if count == 0 {
			continue
		}
		successor := firstOf(r.yes, c.all)
		if !c.heads.Has(successor) {
			return false
		}
		c.heads.Remove(successor)
		c.next[d] = successor
	}
	return true
}

func firstOf(a, b Bits) int {
	i := a.Next(0)
	for !b.Has(i) {
		i = a.Next(i + 1)
	}
	return i
}

// path is one of the paths. first and last are the places of the chosen devices in it, -1
// if there are none.
type path struct{ head, length, first, last int }

func (c *chains) pathFrom(head int) path {
	p := path{head: head, first: -1, last: -1}
	for d := head; d >= 0; d = c.next[d] {
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

// refine looks for the path that has the stretch. If some of it is chosen it is that one.
func (c *chains) refine() bool {
	c.circling = c.all.Count()
	touched := path{head: -1}
	for head := c.heads.Next(0); head >= 0; head = c.heads.Next(head + 1) {
		p := c.pathFrom(head)
		c.circling -= p.length
		switch {
		case p.first < 0:
		case touched.head >= 0:
			return false
		default:
			touched = p
		}
	}
	c.keep.Set(c.all)
	for head := c.heads.Next(0); head >= 0; head = c.heads.Next(head + 1) {
		if p := c.pathFrom(head); touched.head >= 0 && head != touched.head || p.length+c.circling < c.size {
			c.dropPath(head)
		}
	}
	if touched.head >= 0 && (touched.length+c.circling < c.size || touched.last-touched.first >= c.size) {
		return false
	}
	c.narrow(touched)
	if c.Left > 0 {
		c.state.keep(c.keep)
		c.requireBetween(touched)
	}
	return c.Left >= 0
}

func (c *chains) dropPath(head int) {
	for d := head; d >= 0; d = c.next[d] {
		c.keep.Remove(d)
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

// requireBetween requires what is between the chosen devices of the path.
func (c *chains) requireBetween(p path) {
	if c.hypothetical {
		return
	}
	between := c.borrow(c.all)
	defer c.giveBack(between)
	between.Clear()
	place := 0
	for d := p.head; d >= 0; d = c.next[d] {
		if place > p.first && place < p.last && c.Possible.Has(d) {
			between.Add(d)
		}
		place++
	}
	if !between.IsEmpty() {
		c.require(between)
	}
}
