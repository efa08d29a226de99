// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import "github.com/celset/celset/cel/device/bitset"

// clique is list.clique(a, b, joined): each device of the list is joined to each other device.
type clique struct{}

func (clique) find(g *graph) matchResult {
	for i := range g.chosen.All() {
		if g.chosen.Count()-g.chosen.CountAnd(g.rows[i]) > 1 {
			return none
		}
	}
	if g.most == 0 {
		return surely
	}
	keep := g.state.Borrow(g.possible)
	defer g.state.GiveBack(keep)
	clique{}.narrow(g, keep)
	if keep.Count() < g.fewest {
		return none
	}
	return some
}

// narrow keeps the devices that are joined to all chosen devices and to enough of the other kept devices.
func (clique) narrow(g *graph, keep bitset.Set) {
	for i := range g.chosen.All() {
		keep.Keep(g.rows[i])
	}
	for changed := true; changed; {
		changed = false
		for i := range keep.All() {
			if keep.CountAnd(g.rows[i]) < g.fewest-1 {
				keep.Remove(i)
				changed = true
			}
		}
	}
}
