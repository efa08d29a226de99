// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// variable is an iteration variable that stands for a device.
type variable struct {
	name string
	slot int
}

// scope has what the identifiers stand for: a slot for a device, notADevice for
// something else, less than that for the place of a device (placeOf). An identifier that
// it does not have is declared by the environment.
type scope map[string]int

const notADevice = -1

func (s scope) with(name string, slot int) scope {
	result := make(scope, len(s)+1)
	for known, slot := range s {
		result[known] = slot
	}
	result[name] = slot
	return result
}

// references finds the variables that a part of the expression has from outside.
// single is false if it speaks of the set or of something that is not a device.
func references(expr ast.Expr, s scope) (free []variable, single bool) {
	single = true
	seen := make(map[string]bool)
	walk(expr, func(e ast.Expr, hidden variables) {
		if e.Kind() != ast.IdentKind {
			return
		}
		name := e.AsIdent()
		if hidden.has(name) || seen[name] {
			return
		}
		switch slot, known := s[name]; {
		case !known && name == devicesVariable || known && slot <= notADevice:
			single = false
		case known:
			seen[name] = true
			free = append(free, variable{name, slot})
		}
	})
	return free, single
}

// variablesOf are the free variables of an expression.
func variablesOf(expr ast.Expr) sets.Set[string] {
	result := sets.New[string]()
	walk(expr, func(e ast.Expr, hidden variables) {
		if e.Kind() == ast.IdentKind && !hidden.has(e.AsIdent()) {
			result.Insert(e.AsIdent())
		}
	})
	return result
}

// typeOf is the type of a comprehension's variable where it is used, dyn if it is not
// used.
func (a *analyzer) typeOf(name string, of ast.ComprehensionExpr) *types.Type {
	result := types.DynType
	for _, part := range []ast.Expr{of.LoopCondition(), of.LoopStep(), of.Result()} {
		walk(part, func(e ast.Expr, hidden variables) {
			if !hidden.has(name) && e.Kind() == ast.IdentKind && e.AsIdent() == name {
				result = a.tree.GetType(e.ID())
			}
		})
	}
	return result
}

// elementOf is the variable that stands for the elements of a list: the second one, if
// the first one stands for their places.
func elementOf(c ast.ComprehensionExpr) string {
	if c.HasIterVar2() {
		return c.IterVar2()
	}
	return c.IterVar()
}

// within is the scope inside a loop over devices.
func (s scope) within(c ast.ComprehensionExpr, slot int) scope {
	return s.with(c.AccuVar(), notADevice).with(c.IterVar(), notADevice).with(elementOf(c), slot)
}

// variables counts the comprehensions around a part that have a variable of the name.
type variables map[string]int

func (v variables) has(name string) bool { return v[name] > 0 }

// without has something else for the names of variables.
func (s scope) without(names variables) scope {
	for name := range names {
		if names.has(name) {
			s = s.with(name, notADevice)
		}
	}
	return s
}

// walk visits an expression and all of its parts, each with the variables of the
// comprehensions that it stands in.
func walk(expr ast.Expr, visit func(e ast.Expr, hidden variables)) {
	hidden := variables{}
	var descend func(ast.Expr)
	descend = func(e ast.Expr) {
		visit(e, hidden)
		if e.Kind() != ast.ComprehensionKind {
			for _, child := range children(e) {
				descend(child)
			}
			return
		}
		c := e.AsComprehension()
		descend(c.IterRange())
		descend(c.AccuInit())
		names := [3]string{c.IterVar(), c.IterVar2(), c.AccuVar()}
		for _, name := range names {
			hidden[name]++
		}
		descend(c.LoopCondition())
		descend(c.LoopStep())
		descend(c.Result())
		for _, name := range names {
			hidden[name]--
		}
	}
	descend(expr)
}

// children are the operands of what is not a comprehension.
func children(expr ast.Expr) []ast.Expr {
	var result []ast.Expr
	switch expr.Kind() {
	case ast.CallKind:
		if expr.AsCall().IsMemberFunction() {
			result = append(result, expr.AsCall().Target())
		}
		return append(result, expr.AsCall().Args()...)
	case ast.SelectKind:
		return []ast.Expr{expr.AsSelect().Operand()}
	case ast.ListKind:
		return expr.AsList().Elements()
	case ast.MapKind:
		for _, entry := range expr.AsMap().Entries() {
			result = append(result, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range expr.AsStruct().Fields() {
			result = append(result, field.AsStructField().Value())
		}
	}
	return result
}
