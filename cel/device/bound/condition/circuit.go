// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import "github.com/celset/celset/cel/device/bitset"

// circuit is list.ring(a, b, joined), or list.path(a, b, joined) if it need not come back to where it
// began. A way is looked for that goes over all chosen devices and as many of the possible ones as may be
// added, in a number of tries.
type circuit struct{ closed bool }

// maxWayTries is how many devices are tried for one way.
const maxWayTries = 1 << 10

func (n circuit) find(g *graph) matches {
	if g.most == 0 {
		return n.complete(g)
	}
	if (connected{}).find(g) == none {
		return none
	}
	s := g.state
	w := &wander{graph: g, closed: n.closed, tries: maxWayTries, visited: s.Borrow(g.chosen), need: g.chosen.Count(), distance: make([]int, len(g.rows))}
	starts := s.Borrow(g.chosen)
	defer func() { s.GiveBack(w.visited); s.GiveBack(starts) }()
	// A circle goes over any of the chosen devices. A path may begin anywhere.
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

// narrow keeps what is within reach of all chosen devices.
func (circuit) narrow(g *graph, keep bitset.Set) { (connected{}).narrow(g, keep) }

// complete asks the function itself. In another order it may find a way where it does not find one in
// this order, but only if it has to end the search.
func (n circuit) complete(g *graph) matches {
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

// wander is a search for a way, from one device to the next.
type wander struct {
	*graph
	closed bool
	// tries are left.
	tries int
	// visited are the devices of the way so far. need counts chosen devices that are not,
	// added the possible ones that are.
	visited     bitset.Set
	need, added int
	start       int
	// distance is from the start, in steps.
	distance []int
}

func (w *wander) begin(start int) bool {
	w.start = start
	w.measure()
	return w.at(start)
}

// measure finds how far devices are from the start.
func (w *wander) measure() {
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

// at goes on from a device, and leaves it again if that leads nowhere.
func (w *wander) at(device int) bool {
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
		// Those that must be in the way come first.
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

// visit enters a device into the way, or removes it.
func (w *wander) visit(device, by int) {
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
func (w *wander) ends(device int) bool {
	return !w.closed || device == w.start || w.rows[device].Has(w.start)
}
