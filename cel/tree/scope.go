// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import "github.com/google/cel-go/common/ast"

// Scope maps the names of the variables that comprehensions declare to values. If a name is declared several times, the
// innermost declaration is last. A comprehension declares its variables only in some of its parts:
//
//	range, initial value   none
//	condition, step        the accumulator and the iteration variables
//	result                 the accumulator
//
// cel.bind is a comprehension whose accumulator has the bound name, so the name is declared in the result only.
type Scope[V any] map[string][]V

// Names is a scope that holds only names.
type Names = Scope[struct{}]

// Declare adds a declaration of the name. It hides earlier declarations until [Scope.Forget].
func (s Scope[V]) Declare(name string, value V) { s[name] = append(s[name], value) }

// Forget removes the innermost declaration of each name.
func (s Scope[V]) Forget(names ...string) {
	for _, name := range names {
		s[name] = s[name][:len(s[name])-1]
	}
}

// Has reports whether the name is declared.
func (s Scope[V]) Has(name string) bool { return len(s[name]) > 0 }

// Lookup returns the value of the innermost declaration.
func (s Scope[V]) Lookup(name string) (value V, declared bool) {
	all := s[name]
	if len(all) == 0 {
		return value, false
	}
	return all[len(all)-1], true
}

// IterVars returns the names of the one or two iteration variables of a comprehension.
func IterVars(c ast.ComprehensionExpr) []string {
	if c.HasIterVar2() {
		return []string{c.IterVar(), c.IterVar2()}
	}
	return []string{c.IterVar()}
}

// ElementVar returns the name of the variable for the elements of a list: the second variable if the first one is the index.
func ElementVar(c ast.ComprehensionExpr) string {
	if c.HasIterVar2() {
		return c.IterVar2()
	}
	return c.IterVar()
}

// Visit calls f for an expression and all of its parts, the outer parts first. hidden has the names that are declared around
// the part. f must not use hidden after it has returned.
func Visit(expr ast.Expr, f func(part ast.Expr, hidden Names)) {
	hidden := Names{}
	var descend func(ast.Expr)
	descend = func(e ast.Expr) {
		f(e, hidden)
		if e.Kind() != ast.ComprehensionKind {
			for _, part := range Parts(e) {
				descend(part)
			}
			return
		}
		c := e.AsComprehension()
		descend(c.IterRange())
		descend(c.AccuInit())
		hidden.Declare(c.AccuVar(), struct{}{})
		for _, name := range IterVars(c) {
			hidden.Declare(name, struct{}{})
		}
		descend(c.LoopCondition())
		descend(c.LoopStep())
		hidden.Forget(IterVars(c)...)
		descend(c.Result())
		hidden.Forget(c.AccuVar())
	}
	descend(expr)
}

// Parts returns the direct parts of an expression in the order of their evaluation. The target of a call comes first. The parts
// of a comprehension are in different scopes ([Scope]).
func Parts(expr ast.Expr) []ast.Expr {
	var result []ast.Expr
	switch expr.Kind() {
	case ast.CallKind:
		return Operands(expr.AsCall())
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
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	return result
}

// Operands returns the target of a call, if it has one, and the arguments.
func Operands(call ast.CallExpr) []ast.Expr {
	if !call.IsMemberFunction() {
		return call.Args()
	}
	return append([]ast.Expr{call.Target()}, call.Args()...)
}
