// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/tree"
)

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

// graphShape is what is asked of a graph.
type graphShape interface {
	// find reports whether the chosen devices and some of the possible ones have the shape.
	find(g *graph) matches
	// narrow removes possible devices from keep that are in no such set. find was not none.
	narrow(g *graph, keep bitset.Set)
}

// graphShapes are the functions of a relation.
var graphShapes = map[string]graphShape{
	library.Connected: connected{}, library.Clique: clique{}, library.Ring: circuit{closed: true}, library.Path: circuit{},
}

// relation reads a function of package library. It is open for anything else.
func (a *analyzer) relation(expr ast.Expr, s scope) condition {
	if expr.Kind() != ast.CallKind {
		return open{}
	}
	args := expr.AsCall().Args()
	switch function := expr.AsCall().FunctionName(); function {
	case library.Connected, library.Clique, library.Ring, library.Path:
		m, ok := a.matrix(args[0], s)
		if !ok || m.shape != m.otherShape || a.setSize > library.MaxCircle {
			return open{}
		}
		return onGraph{m.list, m.joins, graphShapes[function]}
	case library.Paired:
		return a.paired(args[0], s)
	case library.Box:
		return a.boxFunction(args, s)
	default:
		return open{}
	}
}

// matrix is list.map(a, other.map(b, joins)).
type matrix struct {
	list, other deviceList
	// The shapes of two lists are the same if they are written alike.
	shape, otherShape string
	joins             *predicate
}

func (a *analyzer) matrix(expr ast.Expr, s scope) (m matrix, ok bool) {
	var first, second loopVariable
	expr, m.list, first, ok = a.mapOf(expr, s)
	if !ok {
		return m, false
	}
	m.shape = first.shape
	expr, m.other, second, ok = a.mapOf(expr, first.scope)
	if !ok {
		return m, false
	}
	m.otherShape = second.shape
	free, single := references(expr, second.scope)
	for _, v := range free {
		single = single && (v == first.variable || v == second.variable)
	}
	if !single {
		return m, false
	}
	// It may speak of one of them only, or of none, and is asked of pairs all the same.
	holds := local{a}.condition(expr, second.scope)
	m.joins = a.tabulated("joins", expr, holds, tabulated{free: []variable{first.variable, second.variable}, pairwise: true})
	return m, !isOpen(holds)
}

type loopVariable struct {
	variable
	scope scope
	// shape is that of the list that the variable goes over.
	shape string
}

// mapOf reads list.map(x, value) over devices.
func (a *analyzer) mapOf(expr ast.Expr, s scope) (value ast.Expr, list deviceList, over loopVariable, ok bool) {
	expr = a.normal.reduce(expr, s)
	if expr.Kind() != ast.ComprehensionKind {
		return nil, nil, over, false
	}
	c := expr.AsComprehension()
	keeps, value, ok := tree.CollectionOf(c)
	if !ok || keeps != nil || c.HasIterVar2() {
		return nil, nil, over, false
	}
	if list, ok = a.deviceList(c.IterRange(), s); !ok {
		return nil, nil, over, false
	}
	over.variable = variable{c.IterVar(), a.newSlot()}
	over.scope = s.within(c, over.slot)
	over.shape = shapeOf(a.normal.reduce(c.IterRange(), s), nil)
	return value, list, over, true
}

func (n onGraph) bound(s *state) Outcome {
	g, ok := n.graph(s)
	defer g.giveBack(s)
	if !ok {
		return Open
	}
	return outcomesOf(n.shape.find(g))
}

// outcomesOf is what a function may be of which something was found.
func outcomesOf(m matches) Outcome {
	switch m {
	case none:
		return False
	case surely:
		return True
	default:
		return True | False
	}
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

// members are the devices that are or may come into a list.
type members struct {
	chosen, possible bitset.Set
	// fewest and most of the possible ones join the set.
	fewest, most int
}

// membersOf looks at a list, in sets to be given back. ok is false if it is not known of each device
// whether it is in the list.
func membersOf(s *state, list deviceList) (m members, ok bool) {
	m = members{chosen: s.borrow(s.Chosen), possible: s.borrow(s.Domain)}
	if s.Left <= 0 {
		m.possible.Clear()
	}
	if _, all := list.(allDevices); !all {
		for _, devices := range []bitset.Set{m.chosen, m.possible} {
			for i := range devices.All() {
				switch list.membership(s, i) {
				case True:
				case False:
					devices.Remove(i)
				default:
					return m, false
				}
			}
		}
	}
	if s.Left > 0 {
		count := m.possible.Count()
		m.most = min(s.Left, count)
		// Where fewer devices are possible than are to be added there is no completion.
		m.fewest = min(m.most, max(0, s.Left-(s.Domain.Count()-count)))
	}
	if m.most == 0 {
		m.possible.Clear()
	}
	return m, true
}

func (m members) giveBack(s *state) {
	s.giveBack(m.chosen)
	s.giveBack(m.possible)
}

// remove leaves possible devices only that are to be kept.
func (m members) remove(s *state, keep bitset.Set) {
	gone := s.borrow(m.possible)
	gone.Drop(keep)
	s.drop(gone)
	s.giveBack(gone)
}

// graph says which members of a list are joined.
type graph struct {
	members
	state *state
	// rows have for each member those that it is joined to, but for itself.
	rows []bitset.Set
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

// isExact reports whether the verdict is known for each of the devices.
func (r *row) isExact(devices bitset.Set) bool {
	if r.exact {
		return true
	}
	for i := range devices.All() {
		if !r.yes.Has(i) && !r.no.Has(i) {
			return false
		}
	}
	return true
}

// rows returns memory for a set for each device, until it is called again.
func (s *state) rows() []bitset.Set {
	if s.spareRows == nil {
		n := len(s.tables.devices)
		list := bitset.NewList(n, n)
		s.spareRows = make([]bitset.Set, n)
		for i := range s.spareRows {
			s.spareRows[i] = list.At(i)
		}
	}
	return s.spareRows
}

// library is the graph of the chosen devices, which are all there will be.
func (g *graph) library() library.Graph {
	number := make(map[int]int, g.chosen.Count())
	for i := range g.chosen.All() {
		number[i] = len(number)
	}
	result := library.NewGraph(len(number))
	for i, a := range number {
		for o := range g.rows[i].All() {
			result.Join(a, number[o])
		}
	}
	return result
}
