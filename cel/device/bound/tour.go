// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bitset"
)

// tour is list.ring(a, b, joined), or list.path(a, b, joined) if it need not come back to where it began.
// One is looked for that goes over all chosen devices and as many of the possible ones as may be added,
// in a number of tries.
type tour struct{ closed bool }

const (
	// maxTourTries is how many devices are tried for one tour, maxTours how many for those of
	// all devices that are to be kept.
	maxTourTries = 1 << 10
	maxTours     = 1 << 11
)

func (n tour) find(g *graph) matches {
	if g.most == 0 {
		return n.complete(g)
	}
	if (connected{}).find(g) == none {
		return none
	}
	tries := maxTourTries
	found, visited := n.look(g, &tries)
	if visited != nil {
		g.state.giveBack(visited)
	}
	return found
}

// complete asks the function itself. In another order it may find a tour where it does not find one in
// this order, but only if it has to end the search.
func (n tour) complete(g *graph) matches {
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

// narrow keeps the devices with which a tour is found, and those of which nothing was found out.
func (n tour) narrow(g *graph, keep bitset.Set) {
	(connected{}).narrow(g, keep)
	s := g.state
	proven := s.borrow(keep)
	proven.Clear()
	defer s.giveBack(proven)
	tries := maxTours
	for i := range keep.All() {
		if proven.Has(i) {
			continue
		}
		if tries <= 0 {
			return
		}
		with := g.with(i)
		once := min(tries, maxTourTries)
		before := once
		found, visited := n.look(with, &once)
		tries -= before - once
		switch {
		case found == none:
			keep.Remove(i)
		case visited != nil:
			proven.Join(visited)
		}
		with.giveBack(s)
		if visited != nil {
			s.giveBack(visited)
		}
	}
}

// with is the graph with one more chosen device.
func (g *graph) with(device int) *graph {
	s := g.state
	result := *g
	result.chosen, result.possible = s.borrow(g.chosen), s.borrow(g.possible)
	result.chosen.Add(device)
	result.possible.Remove(device)
	result.fewest, result.most = max(0, g.fewest-1), g.most-1
	return &result
}

// look looks for a tour. If there is one, visited are its devices, in a set to be given back.
func (n tour) look(g *graph, tries *int) (found matches, visited bitset.Set) {
	s := g.state
	w := &wander{graph: g, closed: n.closed, tries: tries, visited: s.borrow(g.chosen), need: g.chosen.Count()}
	starts := s.borrow(g.chosen)
	defer s.giveBack(starts)
	// A circle goes over any of the chosen devices. A path may begin anywhere.
	if !n.closed || starts.IsEmpty() {
		starts.Join(g.possible)
	}
	if starts.IsEmpty() || g.chosen.IsEmpty() && g.fewest == 0 {
		s.giveBack(w.visited)
		return some, nil
	}
	for start := range starts.All() {
		w.visited.Clear()
		if w.begin(start) {
			return some, w.visited
		}
		if *w.tries <= 0 {
			s.giveBack(w.visited)
			return some, nil
		}
		if n.closed && !g.chosen.IsEmpty() {
			break
		}
	}
	s.giveBack(w.visited)
	return none, nil
}

// wander is a search for a tour, from one device to the next.
type wander struct {
	*graph
	closed bool
	// tries are left.
	tries *int
	// visited are the devices of the tour so far. need counts chosen devices that are not,
	// added the possible ones that are.
	visited     bitset.Set
	need, added int
	start       int
	// distance is from the start, in steps.
	distance []int
}

func (w *wander) begin(start int) bool {
	w.start = start
	w.distance = w.state.numbers(len(w.rows))
	w.measure()
	return w.at(start)
}

// measure finds how far devices are from the start.
func (w *wander) measure() {
	s := w.state
	for i := range w.rows {
		w.distance[i] = len(w.rows)
	}
	reached, layer, next := s.borrow(w.chosen), s.borrow(w.chosen), s.borrow(w.chosen)
	defer func() { s.giveBack(reached); s.giveBack(layer); s.giveBack(next) }()
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
	if *w.tries--; *w.tries < 0 {
		return false
	}
	w.visit(device, 1)
	left := w.need + w.most - w.added
	switch {
	case w.added > w.most || w.closed && w.distance[device] > left+1:
	case w.need == 0 && w.added >= w.fewest && w.ends(device):
		return true
	case left > 0:
		// Those that must be in the tour come first.
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

// visit enters a device into the tour, or removes it.
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

// ends tells whether the tour may end at a device.
func (w *wander) ends(device int) bool {
	return !w.closed || device == w.start || w.rows[device].Has(w.start)
}
