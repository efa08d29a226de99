// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

// guarding adds guards to an analyzer.
type guarding struct{ analyzer *analyzer }

// guardLeaf uses the leaf of expr as the guard of all operations in expr that may abort.
func (g guarding) guardLeaf(l *propagate.Leaf, expr ast.Expr) {
	if len(l.Names) > 1 {
		return
	}
	before := g.analyzer.normal.Unguarded.Len()
	tree.Visit(expr, func(e ast.Expr, _ tree.Names) { g.analyzer.normal.Unguarded.Delete(e.ID()) })
	if g.analyzer.normal.Unguarded.Len() < before {
		g.analyzer.guards = append(g.analyzer.guards, propagate.Guard{Leaf: l, Against: propagate.Aborting})
	}
}

// guardOperand adds guards for a function of the set if its operand is a list that can be checked device by device. It returns
// false for any other function or operand.
func (g guarding) guardOperand(expr ast.Expr, s normal.Scope) bool {
	if !tree.IsCall(expr, "flatten") || !expr.AsCall().IsMemberFunction() || len(expr.AsCall().Args()) > 0 {
		return false
	}
	guards, ok := g.guardsOf(expr.AsCall().Target(), s)
	if ok {
		g.analyzer.guards = append(g.analyzer.guards, guards...)
	}
	return ok
}

// guardsOf returns guards which ensure that the expression is a list and does not fail. It returns false if there are no such
// guards.
func (g guarding) guardsOf(list ast.Expr, s normal.Scope) ([]propagate.Guard, bool) {
	switch {
	case list.Kind() == ast.IdentKind:
		_, hidden := s[list.AsIdent()]
		return nil, device.IsSet(list.AsIdent()) && !hidden
	case list.Kind() != ast.ComprehensionKind:
		return nil, false
	}
	c := list.AsComprehension()
	keeps, element, ok := tree.CollectionOf(c)
	if !ok {
		return nil, false
	}
	guards, ok := g.guardsOfDevices(c.IterRange(), s)
	if !ok {
		return nil, false
	}
	within := s.Within(c, g.analyzer.newSlot())
	if keeps != nil && !g.guardedBy(&guards, keeps, within, propagate.NotBool) {
		return nil, false
	}
	return guards, g.guardedBy(&guards, element, within, propagate.Failing)
}

// guardsOfDevices is guardsOf for a list of devices. It returns false for any other list.
func (g guarding) guardsOfDevices(list ast.Expr, s normal.Scope) ([]propagate.Guard, bool) {
	if _, ok := g.analyzer.deviceList(list, s); !ok {
		return nil, false
	}
	return g.guardsOf(list, s)
}

// guardedBy appends a guard against the misbehaviour how of a part. It returns false if the part refers to more than one
// device.
func (g guarding) guardedBy(guards *[]propagate.Guard, part ast.Expr, s normal.Scope, how propagate.Against) bool {
	free, single := normal.References(part, s)
	if !single || len(free) > 1 {
		return false
	}
	*guards = append(*guards, propagate.Guard{Leaf: g.analyzer.newLeaf(part, free), Against: how})
	return true
}
