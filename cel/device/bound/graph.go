// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/outcome"
)

import "github.com/celset/celset/cel/device/bitset"

// onGraph is a function of package library that asks which devices of a list are joined: connected,
// clique, ring or path. What a partial set can still become is a question of its graph.
//
//	devices.connected(a, b, linked(a, b))
type onGraph struct {
	list deviceList
	// joins reports whether the second variable's device is joined to the first one's.
	joins *predicate
	shape graphShape
}

func (n onGraph) bound(s *state) outcome.Outcome {
	g, ok := n.graph(s)
	defer g.giveBack(s)
	if !ok {
		return outcome.Open
	}
	return outcomesOf(n.shape.find(g))
}

func (n onGraph) propagate(s *state) status {
	g, ok := n.graph(s)
	defer g.giveBack(s)
	if !ok {
		return noFix
	}
	found := n.shape.find(g)
	if found == none || g.most == 0 {
		return statusOf(outcomesOf(found))
	}
	keep := s.borrow(g.possible)
	n.shape.narrow(g, keep)
	g.remove(s, keep)
	s.giveBack(keep)
	return noFix
}

// graph is false if a relation may fail, or is not known.
func (n onGraph) graph(s *state) (*graph, bool) {
	m, ok := membersOf(s, n.list)
	g := &graph{members: m, state: s, rows: s.rows()}
	if !ok {
		return g, false
	}
	all := s.borrow(m.chosen)
	all.Join(m.possible)
	defer s.giveBack(all)
	for i := range all.All() {
		if !s.spend() || !n.joinsOf(s, i, all, g.rows[i]) {
			return g, false
		}
		g.rows[i].Keep(all)
		g.rows[i].Remove(i)
	}
	return g, true
}

// joinsOf finds what a device is joined to, in whichever order the relation holds.
func (n onGraph) joinsOf(s *state, device int, all, into bitset.Set) bool {
	into.Clear()
	for over := range maxArity {
		r := n.joins.rowAt(s, over, device)
		if !r.isExact(all) {
			return false
		}
		into.Join(r.yes)
	}
	return true
}
