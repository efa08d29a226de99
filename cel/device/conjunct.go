// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"unicode"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"

	"github.com/celset/celset/cel/tree"
)

// Conjunct is one operand of the outermost "&&" of an expression.
type Conjunct struct {
	// Text is the condition on one line, without comments. It compiles by itself. It is empty if the condition can't be written as
	// text.
	Text string
	// Line and Column are the position of the condition's first character in the expression, counted from 1. Opening brackets
	// before the condition don't belong to it.
	Line, Column int
}

// Conjuncts splits the expression at the outermost "&&", in the order of the text. If there is no "&&", the only conjunct is
// the whole expression.
func (e *Expression) Conjuncts() []Conjunct {
	info := e.AST().SourceInfo()
	var result []Conjunct
	for _, expr := range tree.Conjuncts(e.AST().Expr()) {
		start := location(expr, info)
		text, err := parser.Unparse(expr, info, parser.WrapOnColumn(maxLine))
		if err != nil {
			text = ""
		}
		result = append(result, Conjunct{Text: text, Line: start.line, Column: start.column})
	}
	return result
}

// maxLine is greater than the length of any expression. The unparser gets it as the line length, so that it never breaks a
// line.
const maxLine = 1 << 20

type position struct{ line, column int }

// location returns the position where the text of an expression begins. CEL's own position of an operator call is the
// operator's sign, after the left operand.
func location(expr ast.Expr, info *ast.SourceInfo) position {
	first := int32(-1)
	var look func(ast.Expr)
	look = func(part ast.Expr) {
		named := part
		if call, isMacro := info.GetMacroCall(part.ID()); isMacro {
			named = call
			ast.PostOrderVisit(call, ast.NewExprVisitor(look))
		}
		if at, ok := info.GetOffsetRange(part.ID()); ok {
			if start := at.Start - nameBefore(named); first < 0 || start < first {
				first = start
			}
		}
	}
	ast.PostOrderVisit(expr, ast.NewExprVisitor(look))
	if first < 0 {
		return position{1, 1}
	}
	at := info.GetLocationByOffset(first)
	return position{at.Line(), at.Column() + 1}
}

// nameBefore returns the length of the function name in a call f(x), because CEL's position of such a call is the bracket after
// the name. It returns 0 for operators and member calls.
func nameBefore(expr ast.Expr) int32 {
	if expr.Kind() != ast.CallKind || expr.AsCall().IsMemberFunction() {
		return 0
	}
	name := expr.AsCall().FunctionName()
	if !unicode.IsLetter(rune(name[0])) {
		return 0 // operators are named like _+_ or @in
	}
	return int32(len(name))
}
