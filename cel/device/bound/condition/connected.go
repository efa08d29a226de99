// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import "github.com/celset/celset/cel/device/bitset"

// connected is list.connected(a, b, joined). Each chosen device must reach every other chosen device, and the ways between them
// must use at most as many possible devices as are left to choose.
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
	// The list has no chosen device, so a connected part of the graph must be large enough for the whole list.
	left := g.state.Borrow(g.possible)
	defer g.state.GiveBack(left)
	for i := range left.All() {
		if g.reach(i, g.fewest-1, reached); reached.Count() >= g.fewest {
			return some
		}
	}
	return none
}

// narrow keeps the devices that all chosen devices can reach. Chosen devices that are connected with each other reach the same
// devices, so narrow checks only one of them.
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

// reach sets reached to the devices that a device can reach over at most over possible devices. The start is not counted, and
// chosen devices are never counted.
func (g *graph) reach(from, over int, reached bitset.Set) {
	s := g.state
	layer, next := s.Borrow(reached), s.Borrow(reached)
	defer func() { s.GiveBack(layer); s.GiveBack(next) }()
	reached.Clear()
	reached.Add(from)
	layer.SetTo(reached)
	for {
		// A way over chosen devices adds no devices to the set, so its length is not limited.
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
