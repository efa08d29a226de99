// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// successors is the graph of the chosen and possible devices and their successors.
type successors struct {
	*propagate.State
	// size is the number of devices in a complete set. mayBeCircle means that a set may be one whole circle.
	size        int
	mayBeCircle bool

	// Step 1, link, fills all (all devices), heads (devices without a predecessor) and next (the successor of each device, or
	// -1).
	all, heads bitset.Set
	next       []int

	// Step 2, findPaths, fills the paths, and the number of devices in circles that fit into the set.
	paths    []path
	circling int

	// Step 3, propagate, fills keep: the possible devices that may still be in the set.
	keep bitset.Set
}

// successorsOf returns the reused memory for one graph per state. The memory is valid until the next call with the same state.
func successorsOf(s *propagate.State) *successors {
	if known, ok := s.SpareGraph.(*successors); ok {
		return known
	}
	n := s.Universe()
	sets := bitset.NewList(3, n)
	g := &successors{State: s, all: sets.At(0), heads: sets.At(1), keep: sets.At(2), next: make([]int, n)}
	s.SpareGraph = g
	return g
}

// link finds the successor of each device. It returns false if the devices don't form paths and circles.
func (g *successors) link(follows *propagate.Predicate, over int) bool {
	g.heads.SetTo(g.all)
	made := follows.RowsOver(g.State, over)
	for d := range g.all.All() {
		r := made.At(d)
		if r == nil {
			r = follows.RowAt(g.State, over, d)
		}
		if !g.Spend() || !r.IsExact(g.all) {
			return false
		}
		g.next[d] = -1
		switch r.Yes.CountAnd(g.all) {
		case 0:
			continue
		case 1:
		default:
			return false
		}
		for successor := r.Yes.Next(0); ; successor = r.Yes.Next(successor + 1) {
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

// A path is a path of the graph, or a circle that does not fit into the set as a whole. first and last are the positions of the
// first and last chosen device on the path, or -1. A circle with a chosen device begins at a chosen device.
type path struct {
	head, length, first, last int
	circular                  bool
}

// pathFrom follows the successors from the device head to the end of the path, or around the circle back to head.
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

// longest returns the maximum length of a stretch on the path. A stretch of a circle omits at least one device.
func (p path) longest() int {
	if p.circular {
		return p.length - 1
	}
	return p.length
}

// findPaths collects the paths, the circles that don't fit into the set, and the number of devices in circles that fit.
func (g *successors) findPaths() {
	g.paths, g.circling = g.paths[:0], 0
	rest := g.Borrow(g.all)
	defer g.GiveBack(rest)
	for head := range g.heads.All() {
		p := g.pathFrom(head)
		g.paths = append(g.paths, p)
		g.removePath(rest, p)
	}
	// The loop skips the other devices of a circle, because removePath removes them from rest.
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
