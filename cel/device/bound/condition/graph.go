// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/device/library"
)

// onGraph is a function of package library on the graph of a list's devices: connected, clique, ring or path. The chosen and
// possible devices form a graph, and the graph determines the bounds.
//
//	devices.connected(a, b, linked(a, b))
type onGraph struct {
	list DeviceList
	// joins is true if the second variable's device is joined to the first one's.
	joins *propagate.Predicate
	shape graphProperty
}

func (n onGraph) Bound(s *propagate.State) outcome.Outcome {
	g, ok := n.graph(s)
	defer g.giveBack(s)
	if !ok {
		return outcome.Open
	}
	return outcomesOf(n.shape.find(g))
}

func (n onGraph) Propagate(s *propagate.State) propagate.Status {
	g, ok := n.graph(s)
	defer g.giveBack(s)
	if !ok {
		return propagate.NoFix
	}
	found := n.shape.find(g)
	if found == none || g.most == 0 {
		return propagate.StatusOf(outcomesOf(found))
	}
	keep := s.Borrow(g.possible)
	n.shape.narrow(g, keep)
	g.remove(s, keep)
	s.GiveBack(keep)
	return propagate.NoFix
}

// graph returns the graph of the list's members. It returns false if the relation may fail, or if the relation or the
// membership of a device is not decided.
func (n onGraph) graph(s *propagate.State) (*graph, bool) {
	m, ok := membersOf(s, n.list)
	g := &graph{members: m, state: s, rows: s.Rows()}
	if !ok {
		return g, false
	}
	all := s.Borrow(m.chosen)
	all.Join(m.possible)
	defer s.GiveBack(all)
	for i := range all.All() {
		if !s.Spend() || !n.joinsOf(s, i, all, g.rows[i]) {
			return g, false
		}
		g.rows[i].Keep(all)
		g.rows[i].Remove(i)
	}
	return g, true
}

// joinsOf sets into to the devices that are joined to a device, in either direction of the relation. It returns false if the
// relation is not decided for a device in all.
func (n onGraph) joinsOf(s *propagate.State, device int, all, into bitset.Set) bool {
	into.Clear()
	for over := range propagate.MaxArity {
		r := n.joins.RowAt(s, over, device)
		if !r.IsExact(all) {
			return false
		}
		into.Join(r.Yes)
	}
	return true
}

// graphProperties maps each function to the property that it tests.
var graphProperties = map[string]graphProperty{
	library.Connected: connected{}, library.Clique: clique{}, library.Ring: circuit{closed: true}, library.Path: circuit{},
}

// NewOnGraph returns one of the functions Connected, Clique, Ring and Path of package library.
func NewOnGraph(function string, list DeviceList, joins *propagate.Predicate) propagate.Condition {
	return onGraph{list, joins, graphProperties[function]}
}
