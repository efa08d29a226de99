// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
)

// Compiling takes time and memory that grow faster than the text: the type checker copies what
// it knows of types at each call, the type of a list of lists of lists is as long as it is
// deep, and macros write out more than they say. What people write is far below these
// limits; an expression at the limits compiles in about a tenth of a second and takes some
// tens of MiB meanwhile.
const (
	// MaxTokens is the number of words and signs in an expression; a text in quotes is one. An
	// expression over devices can't have more.
	MaxTokens = MaxExpressionLength
	// MaxNodes is the number of nodes of the syntax tree after macros were expanded.
	MaxNodes = 5000
	// MaxDepth is how deep nodes are nested: parentheses count once where they are needed.
	MaxDepth = 100
	// MaxLiteralDepth is how deep literal lists and maps, and calls of type(), are nested.
	MaxLiteralDepth = 12
)

// checkTokens refuses a text of too many words before it is parsed.
func checkTokens(text string) error {
	if count := tokens(text); count > MaxTokens {
		return &Error{
			Reason:  ReasonTooLong,
			Message: fmt.Sprintf("the expression has more than %d words and signs: split it into several", MaxTokens),
		}
	}
	return nil
}

// tokens counts words and signs, roughly: it need not know which of them CEL has. It stops
// counting beyond [MaxTokens].
func tokens(text string) int {
	count, word := 0, false
	for i := 0; i < len(text) && count <= MaxTokens; i++ {
		switch c := text[i]; {
		case c == '\'' || c == '"':
			// The prefix of a raw text or of bytes is a word that was counted.
			i = endOfText(text, i)
			count, word = count+1, false
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
			word = false
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			word = false
		case c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if !word {
				count++
			}
			word = true
		case i > 0 && c == text[i-1] && (c == '&' || c == '|' || c == '='):
			// The second half of a sign.
		default:
			count, word = count+1, false
		}
	}
	return count
}

// endOfText is the index of the quotation mark that ends the text which begins at one. A text
// that is not ended ends with the line, or with everything.
func endOfText(text string, start int) int {
	quote := text[start]
	isRaw := start > 0 && (text[start-1] == 'r' || text[start-1] == 'R')
	for i := start + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && !isRaw:
			i++
		case c == quote || c == '\n':
			return i
		}
	}
	return len(text)
}

// checkTree refuses a syntax tree that is too large or too deep before its types are
// checked.
func (e *Environment) checkTree(parsed *cel.Ast) error {
	tree := parsed.NativeRep()
	m := &measurer{info: tree.SourceInfo()}
	m.visit(tree.Expr(), 1, 0)
	if m.message == "" {
		return nil
	}
	return positioned(ReasonTooLong, parsed.Source(), m.at, m.message)
}

type measurer struct {
	info    *ast.SourceInfo
	nodes   int
	message string
	at      common.Location
}

func (m *measurer) refuse(expr ast.Expr, format string, limit int) {
	m.message, m.at = fmt.Sprintf(format, limit), m.info.GetStartLocation(expr.ID())
}

func (m *measurer) visit(expr ast.Expr, depth, literals int) {
	if m.message != "" {
		return
	}
	if isLiteralLevel(expr) {
		literals++
	}
	switch m.nodes++; {
	case m.nodes > MaxNodes:
		m.refuse(expr, "the expression has more than %d parts after its macros are expanded: split it into several", MaxNodes)
	case depth > MaxDepth:
		m.refuse(expr, "the expression is nested more than %d levels deep: give parts a name with cel.bind, or split it into several", MaxDepth)
	case literals > MaxLiteralDepth:
		m.refuse(expr, "lists, maps and types are nested more than %d levels deep", MaxLiteralDepth)
	default:
		for _, child := range children(expr) {
			m.visit(child, depth+1, literals)
		}
	}
}

func isLiteralLevel(expr ast.Expr) bool {
	switch expr.Kind() {
	case ast.ListKind, ast.MapKind:
		return true
	case ast.CallKind:
		switch expr.AsCall().FunctionName() {
		case "type", "optional.of":
			return true
		}
	}
	return false
}

// children are the parts of an expression.
func children(expr ast.Expr) []ast.Expr {
	switch expr.Kind() {
	case ast.SelectKind:
		return []ast.Expr{expr.AsSelect().Operand()}
	case ast.CallKind:
		call := expr.AsCall()
		if call.IsMemberFunction() {
			return append([]ast.Expr{call.Target()}, call.Args()...)
		}
		return call.Args()
	case ast.ListKind:
		return expr.AsList().Elements()
	case ast.MapKind:
		var result []ast.Expr
		for _, entry := range expr.AsMap().Entries() {
			result = append(result, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return result
	case ast.StructKind:
		var result []ast.Expr
		for _, field := range expr.AsStruct().Fields() {
			result = append(result, field.AsStructField().Value())
		}
		return result
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	default:
		return nil
	}
}
