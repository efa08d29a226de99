// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"unicode"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"

	"github.com/celset/celset/cel/tree"
)

// Conjunct is one of the conditions that an expression joins by "&&".
type Conjunct struct {
	// Text is the condition as CEL writes it: without comments, on one line. It compiles by
	// itself.
	Text string
	// Line and Column are where it begins in the expression, both counted from 1. Opening
	// brackets before it are not part of it.
	Line, Column int
}

// Conjuncts splits the expression at the outermost "&&", in the order in which they are
// written. An expression without any is its only conjunct. A conjunct that can't be written
// as text again has none.
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

// maxLine is longer than any expression: conditions are written on one line.
const maxLine = 1 << 20

type position struct{ line, column int }

// location is where the first part of an expression stands. The position of an operator
// is that of its sign, which may be far behind.
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

// nameBefore is the length of the function's name in front of the bracket, which is where a
// call stands that is neither an operator nor of a member.
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
