// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"maps"

	"github.com/google/cel-go/common/ast"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
)

// variable is an iteration variable that stands for a device.
type variable struct {
	name string
	slot int
}

// meaning is what an identifier stands for: the device in a slot, or anything else.
type meaning struct {
	isDevice bool
	slot     int
}

// deviceIn is the device in a slot.
func deviceIn(slot int) meaning { return meaning{true, slot} }

// scope has what the identifiers stand for. One that it does not have is declared by the
// environment.
type scope map[string]meaning

func (s scope) with(name string, is meaning) scope {
	result := make(scope, len(s)+1)
	maps.Copy(result, s)
	result[name] = is
	return result
}

// references finds the variables that a part of the expression has from outside.
// single is false if it speaks of the set or of something that is not a device.
func references(expr ast.Expr, s scope) (free []variable, single bool) {
	single = true
	seen := make(map[string]bool)
	tree.Visit(expr, func(e ast.Expr, hidden tree.Names) {
		if e.Kind() != ast.IdentKind {
			return
		}
		name := e.AsIdent()
		if hidden.Has(name) || seen[name] {
			return
		}
		switch is, known := s[name]; {
		case !known && device.IsSet(name) || known && !is.isDevice:
			single = false
		case known:
			seen[name] = true
			free = append(free, variable{name, is.slot})
		}
	})
	return free, single
}

// variablesOf are the free variables of an expression.
func variablesOf(expr ast.Expr) sets.Set[string] {
	result := sets.New[string]()
	tree.Visit(expr, func(e ast.Expr, hidden tree.Names) {
		if e.Kind() == ast.IdentKind && !hidden.Has(e.AsIdent()) {
			result.Insert(e.AsIdent())
		}
	})
	return result
}

// within is the scope inside a loop over devices.
func (s scope) within(c ast.ComprehensionExpr, slot int) scope {
	return s.inside(c).with(tree.ElementVar(c), deviceIn(slot))
}

// inside is the scope inside a loop over anything.
func (s scope) inside(c ast.ComprehensionExpr) scope {
	return s.with(c.AccuVar(), meaning{}).with(c.IterVar(), meaning{}).with(tree.ElementVar(c), meaning{})
}

// without has something else for the names of variables.
func (s scope) without(names tree.Names) scope {
	for name := range names {
		if names.Has(name) {
			s = s.with(name, meaning{})
		}
	}
	return s
}

// deviceOf is the slot of a variable that stands for a device.
func deviceOf(expr ast.Expr, s scope) (slot int, ok bool) {
	if expr.Kind() != ast.IdentKind {
		return 0, false
	}
	is := s[expr.AsIdent()]
	return is.slot, is.isDevice
}

// isOfDevice reports whether an expression speaks of one device at most.
func isOfDevice(expr ast.Expr, s scope) bool {
	free, single := references(expr, s)
	return single && len(free) <= 1
}
