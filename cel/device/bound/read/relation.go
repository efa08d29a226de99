// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/device/bound/condition"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/tree"
)

// relation converts a call of a function of package library. Any other function is open.
func (a *analyzer) relation(expr ast.Expr, s normal.Scope) propagate.Condition {
	if expr.Kind() != ast.CallKind {
		return propagate.Open{}
	}
	args := expr.AsCall().Args()
	switch function := expr.AsCall().FunctionName(); function {
	case library.Connected, library.Clique, library.Ring, library.Path:
		m, ok := a.matrix(args[0], s)
		if !ok || m.shape != m.otherShape || a.SetSize > library.MaxCircle {
			return propagate.Open{}
		}
		return condition.NewOnGraph(function, m.list, m.joins)
	case library.Paired:
		return a.paired(args[0], s)
	case library.Box:
		return a.boxFunction(args, s)
	case library.Segments:
		return a.segmentsFunction(args, s)
	default:
		return propagate.Open{}
	}
}

// matrix is the list list.map(a, other.map(b, joins)): the argument of a graph function that says which devices are joined.
type matrix struct {
	list, other condition.DeviceList
	// shape and otherShape are the shapes of the two lists. They are equal if the two lists are written in the same way.
	shape, otherShape string
	joins             *propagate.Predicate
}

func (a *analyzer) matrix(expr ast.Expr, s normal.Scope) (m matrix, ok bool) {
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
	free, single := normal.References(expr, second.scope)
	for _, v := range free {
		single = single && (v == first.Variable || v == second.Variable)
	}
	if !single {
		return m, false
	}
	// The element may refer to only one of the devices, or to neither. It is still a predicate on both devices.
	holds := local{a}.condition(expr, second.scope)
	of := []normal.Variable{first.Variable, second.Variable}
	m.joins = a.tabulated("joins", expr, of, holds, propagate.Tabulated{Slots: slotsOf(of), Pairwise: true})
	return m, !propagate.IsOpen(holds)
}

type loopVariable struct {
	normal.Variable
	scope normal.Scope
	// shape is the shape (normal.ShapeOf) of the list that the variable iterates over.
	shape string
}

// mapOf converts list.map(x, value) over devices, and returns the value, the list and the variable x.
func (a *analyzer) mapOf(expr ast.Expr, s normal.Scope) (value ast.Expr, list condition.DeviceList, over loopVariable, ok bool) {
	expr = a.normal.Reduce(expr, s)
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
	over.Variable = normal.Variable{Name: c.IterVar(), Slot: a.newSlot()}
	over.scope = s.Within(c, over.Slot)
	over.shape = normal.ShapeOf(a.normal.Reduce(c.IterRange(), s), nil)
	return value, list, over, true
}

// paired converts a call of the function paired.
func (a *analyzer) paired(relation ast.Expr, s normal.Scope) propagate.Condition {
	m, ok := a.matrix(relation, s)
	if !ok {
		return propagate.Open{}
	}
	return condition.NewMatching(m.list, m.other, m.joins)
}
