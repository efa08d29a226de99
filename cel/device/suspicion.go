// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

// maxSuspicions is the maximum number of reports for one expression.
const maxSuspicions = 5

// A Suspicion is a probable mistake: a valid part of an expression whose result surprisingly does not depend on the devices.
type Suspicion struct {
	Position
	Message string
}

// Suspicions reports probable mistakes. It checks the text only, without any devices:
//
//  1. a comparison of maps, which holds for devices without attributes of the domain;
//  2. a comparison of a value with itself;
//  3. a conjunct that reads no device.
//
// In a device selector the third check is replaced: it reports names that no device can have, because Kubernetes accepts any
// name.
func (e *Expression) Suspicions() []Suspicion {
	s := &suspicions{checked: e.AST(), set: e.set}
	if e.set == "" {
		s.names()
	} else {
		for _, conjunct := range tree.Conjuncts(e.AST().Expr()) {
			s.constant(conjunct)
		}
	}
	tree.Visit(e.AST().Expr(), func(part ast.Expr, _ tree.Names) {
		if part.Kind() == ast.CallKind {
			s.maps(part)
			s.itself(part)
		}
	})
	return s.found
}

type suspicions struct {
	checked *ast.AST
	// set is the name of the set variable. It is empty for a device selector, which reads a single device.
	set   string
	found []Suspicion
}

func (s *suspicions) report(at ast.Expr, format string, args ...any) {
	s.reportAt(at.ID(), fmt.Sprintf(format, args...))
}

func (s *suspicions) reportAt(id int64, message string) {
	if len(s.found) == maxSuspicions {
		return
	}
	found := Suspicion{Message: message}
	if start := s.checked.SourceInfo().GetStartLocation(id); start.Line() > 0 {
		found.Position = Position{start.Line(), start.Column() + 1}
	}
	s.found = append(s.found, found)
}

// names reports names in a device selector that no device can have.
func (s *suspicions) names() {
	for _, name := range ImpossibleNames(s.checked) {
		s.reportAt(name.ID, name.Message)
	}
}

// constant reports a conjunct that does not read the set.
func (s *suspicions) constant(conjunct ast.Expr) {
	reads := false
	tree.Visit(conjunct, func(part ast.Expr, hidden tree.Names) {
		reads = reads || tree.IsIdent(part, s.set) && !hidden.Has(s.set)
	})
	if !reads {
		s.report(conjunct, "this part does not read the %s, so its result is the same for every set: remove it, or compare an attribute of the %s", s.set, s.set)
	}
}

// comparing has the functions whose result depends on whether values are equal.
var comparing = []string{operators.Equals, operators.NotEquals, operators.In, "distinct", "includes", "indexOf", "lastIndexOf",
	"sameOrIncludes", "sets.contains", "sets.equivalent", "sets.intersects"}

// maps reports a comparison of maps, unless one side is a map literal. With a literal, the author intended to compare maps.
func (s *suspicions) maps(expr ast.Expr) {
	if !tree.IsCall(expr, comparing...) {
		return
	}
	operands := tree.Operands(expr.AsCall())
	if slices.ContainsFunc(operands, func(operand ast.Expr) bool { return operand.Kind() == ast.MapKind }) {
		return
	}
	if tree.IsCall(expr, operators.In) {
		// "key in map" compares only the key.
		operands = operands[:1]
	}
	if !slices.ContainsFunc(operands, func(operand ast.Expr) bool { return hasMaps(s.checked.GetType(operand.ID())) }) {
		return
	}
	of, element := s.set, "d"
	if s.set == "" {
		of, element = devicesVariable, deviceVariable
	}
	s.report(expr, "%s compares maps, which are empty and equal for %s without attributes of the domain: compare one attribute, such as %s.attributes['gpu.example.com'].model",
		written(expr), of, element)
}

// hasMaps reports whether a type is a map or a list of maps.
func hasMaps(t *types.Type) bool {
	return t.Kind() == types.MapKind || slices.ContainsFunc(t.Parameters(), hasMaps)
}

// Comparison operators, grouped by their result if both operands are the same expression.
var (
	trueOfItself  = []string{operators.Equals, operators.LessEquals, operators.GreaterEquals}
	falseOfItself = []string{operators.NotEquals, operators.Less, operators.Greater}
)

// itself reports a comparison of an expression with itself.
func (s *suspicions) itself(expr ast.Expr) {
	if !tree.IsCall(expr, slices.Concat(trueOfItself, falseOfItself)...) {
		return
	}
	operands := tree.Operands(expr.AsCall())
	if len(operands) != 2 || !tree.Equivalent(operands[0], operands[1]) {
		return
	}
	always := tree.IsCall(expr, trueOfItself...)
	if s.set == "" {
		s.report(expr, "both sides of %s are the same, so the result is always %t: change one side to another attribute or to a constant", written(expr), always)
		return
	}
	s.report(expr, "both sides of %s are the same, so the result is always %t: change one side to read another one of the %s", written(expr), always, s.set)
}

// written returns the symbol of an operator, or the name of a function.
func written(call ast.Expr) string {
	name := call.AsCall().FunctionName()
	if symbol, isOperator := operators.FindReverse(name); isOperator && symbol != "" {
		return symbol
	}
	return name
}
