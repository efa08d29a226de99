// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import "github.com/celset/celset/cel/device/bitset"

// connected is list.connected(a, b, joined). Each chosen device must reach every other chosen device over no more possible
// devices than may be added.
type connected struct{}

func (connected) find(g *graph) matchResult {
	reached := g.state.Borrow(g.chosen)
	defer g.state.GiveBack(reached)
	first := g.chosen.Next(0)
	switch {
	case g.most == 0 && first < 0:
		return surely
	case g.most == 0:
		if g.reach(first, 0, reached); g.chosen.IsWithin(reached) {
			return surely
		}
		return none
	case first >= 0:
		g.reach(first, g.most, reached)
		if g.chosen.IsWithin(reached) && reached.Count() >= g.chosen.Count()+g.fewest {
			return some
		}
		return none
	case g.fewest == 0:
		return some
	}
	// Look for a large enough connected part of the graph.
	left := g.state.Borrow(g.possible)
	defer g.state.GiveBack(left)
	for i := range left.All() {
		if g.reach(i, g.fewest-1, reached); reached.Count() >= g.fewest {
			return some
		}
	}
	return none
}

// narrow keeps the devices within reach of all chosen devices. Chosen devices that are already connected have the same reach, so
// one of them is checked.
func (connected) narrow(g *graph, keep bitset.Set) {
	reached := g.state.Borrow(g.chosen)
	defer g.state.GiveBack(reached)
	if g.chosen.IsEmpty() {
		for i := range g.possible.All() {
			if g.reach(i, max(0, g.fewest-1), reached); reached.Count() < g.fewest {
				keep.Remove(i)
			}
		}
		return
	}
	left := g.state.Borrow(g.chosen)
	defer g.state.GiveBack(left)
	for i := left.Next(0); i >= 0; i = left.Next(0) {
		g.reach(i, g.most, reached)
		keep.Keep(reached)
		g.reach(i, 0, reached)
		left.Drop(reached)
	}
}

// reach sets reached to the devices within reach of a device. A way may use at most over possible devices, not counting the
// first.
func (g *graph) reach(from, over int, reached bitset.Set) {
	s := g.state
	layer, next := s.Borrow(reached), s.Borrow(reached)
	defer func() { s.GiveBack(layer); s.GiveBack(next) }()
	reached.Clear()
	reached.Add(from)
	layer.SetTo(reached)
	for {
		// Chosen devices cost nothing.
		for {
			g.neighbours(layer, next)
			next.Keep(g.chosen)
			next.Drop(reached)
			if next.IsEmpty() {
				break
			}
			reached.Join(next)
			layer.Join(next)
		}
		if over--; over < 0 {
			return
		}
		g.neighbours(layer, next)
		next.Drop(reached)
		if next.IsEmpty() {
			return
		}
		reached.Join(next)
		layer.SetTo(next)
	}
}

// neighbours sets into to the devices that are joined to one of the given devices.
func (g *graph) neighbours(of, into bitset.Set) {
	into.Clear()
	for i := range of.All() {
		into.Join(g.rows[i])
	}
}
