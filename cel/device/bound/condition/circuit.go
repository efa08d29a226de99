// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import "github.com/celset/celset/cel/device/bitset"

// circuit is list.ring(a, b, joined) if closed, otherwise list.path(a, b, joined). A search with a limited number of tries
// looks for a ring or path through all chosen devices that adds at most as many possible devices as are left to choose.
type circuit struct{ closed bool }

// maxWayTries limits the number of devices that one search for a ring or path tries.
const maxWayTries = 1 << 10

func (n circuit) find(g *graph) matchResult {
	if g.most == 0 {
		return n.complete(g)
	}
	if (connected{}).find(g) == none {
		return none
	}
	s := g.state
	w := &waySearch{graph: g, closed: n.closed, tries: maxWayTries, visited: s.Borrow(g.chosen), need: g.chosen.Count(), distance: make([]int, len(g.rows))}
	starts := s.Borrow(g.chosen)
	defer func() { s.GiveBack(w.visited); s.GiveBack(starts) }()
	// A ring goes through all chosen devices, so the search may start at any chosen device. A path may start at any device.
	if !n.closed || starts.IsEmpty() {
		starts.Join(g.possible)
	}
	if starts.IsEmpty() || g.chosen.IsEmpty() && g.fewest == 0 {
		return some
	}
	for start := range starts.All() {
		w.visited.Clear()
		if w.begin(start) || w.tries <= 0 {
			return some
		}
		if n.closed && !g.chosen.IsEmpty() {
			break
		}
	}
	return none
}

// narrow keeps the devices that all chosen devices can reach.
func (circuit) narrow(g *graph, keep bitset.Set) { (connected{}).narrow(g, keep) }

// complete calls the function of package library. If the function gives up, its result depends on the order of the devices, so
// complete returns an undecided result.
func (n circuit) complete(g *graph) matchResult {
	of := g.library()
	found, ended := of.FindPath()
	if n.closed {
		found, ended = of.FindRing()
	}
	switch {
	case ended && found:
		return surely
	case ended:
		return none
	default:
		return some
	}
}

// waySearch is a depth-first search for a ring or path, called way.
type waySearch struct {
	*graph
	closed bool
	// tries is the number of tries left.
	tries int
	// visited has the devices on the way so far. need is the number of chosen devices that are not on the way yet. added is the
	// number of possible devices on the way.
	visited     bitset.Set
	need, added int
	start       int
	// distance[i] is the number of steps from the start to device i.
	distance []int
}

func (w *waySearch) begin(start int) bool {
	w.start = start
	w.measure()
	return w.at(start)
}

// measure computes the distances from the start.
func (w *waySearch) measure() {
	s := w.state
	for i := range w.rows {
		w.distance[i] = len(w.rows)
	}
	reached, layer, next := s.Borrow(w.chosen), s.Borrow(w.chosen), s.Borrow(w.chosen)
	defer func() { s.GiveBack(reached); s.GiveBack(layer); s.GiveBack(next) }()
	layer.Clear()
	layer.Add(w.start)
	reached.SetTo(layer)
	for steps := 0; !layer.IsEmpty(); steps++ {
		for i := range layer.All() {
			w.distance[i] = steps
		}
		w.neighbours(layer, next)
		next.Drop(reached)
		reached.Join(next)
		layer.SetTo(next)
	}
}

// at appends a device to the way and searches on. If the search finds no complete way, at removes the device again.
func (w *waySearch) at(device int) bool {
	if w.tries--; w.tries < 0 {
		return false
	}
	w.visit(device, 1)
	left := w.need + w.most - w.added
	switch {
	case w.added > w.most || w.closed && w.distance[device] > left+1:
	case w.need == 0 && w.added >= w.fewest && w.ends(device):
		return true
	case left > 0:
		// Chosen devices must be on the way, so the search tries them first.
		for _, chosen := range [2]bool{true, false} {
			for i := range w.rows[device].All() {
				if !w.visited.Has(i) && w.chosen.Has(i) == chosen && w.at(i) {
					return true
				}
			}
		}
	}
	w.visit(device, -1)
	return false
}

// visit adds a device to the way if by is 1, or removes the device if by is -1.
func (w *waySearch) visit(device, by int) {
	if by > 0 {
		w.visited.Add(device)
	} else {
		w.visited.Remove(device)
	}
	if w.chosen.Has(device) {
		w.need -= by
	} else {
		w.added += by
	}
}

// ends reports whether the way may end at a device.
func (w *waySearch) ends(device int) bool {
	return !w.closed || device == w.start || w.rows[device].Has(w.start)
}
