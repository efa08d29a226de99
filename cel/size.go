// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/meter"
	"github.com/celset/celset/cel/tree"
)

// Compiling takes time and memory that grow faster than the text, for three reasons. The type checker copies all known types at
// each call. The size of a type grows with the nesting of lists. Macros expand to more than their text. Usual expressions are
// far below these limits. Compiling an expression at the limits takes about a tenth of a second and some tens of MiB.
const (
	// MaxTokens is the maximum number of words and signs in an expression. A quoted text counts as one word. An expression over
	// devices can't exceed this limit, because it has at most as many bytes.
	MaxTokens = MaxExpressionLength
	// MaxWideCharacters is the maximum number of characters outside ASCII in an expression, including texts and comments. CEL's
	// lexer takes a hundred times as long for such characters. An expression over devices is too short to exceed this limit.
	MaxWideCharacters = MaxExpressionLength
	// MaxNodes is the maximum number of nodes of the syntax tree after macro expansion.
	MaxNodes = 6000
	// MaxDepth is the maximum nesting depth of nodes. Unnecessary parentheses do not count.
	MaxDepth = 100
	// MaxTypeSize is the maximum number of names in the type of a part. For example, the type of a list of lists of numbers has
	// three names. cel.bind gives a name the type of its value, so a few nested bindings can make an extremely long type.
	MaxTypeSize = 32
	// MaxChecks is the maximum number of types that the type checker may copy. For each overload of a called function and each
	// element of a list, the checker copies all types inferred so far. Most calls add a type.
	MaxChecks = 600_000
)

// checkText rejects a text with too many words or wide characters before it is parsed.
func checkText(text string) *Error {
	wide := 0
	for _, c := range text {
		if c >= utf8.RuneSelf {
			wide++
		}
	}
	if wide > MaxWideCharacters {
		return &Error{
			Reason:  ReasonTooLong,
			Message: fmt.Sprintf("the expression has %d characters that are not ASCII, the limit is %d: remove some of them", wide, MaxWideCharacters),
		}
	}
	if count := tokens(text); count > MaxTokens {
		return &Error{
			Reason:  ReasonTooLong,
			Message: fmt.Sprintf("the expression has more than %d words and symbols: split it into several", MaxTokens),
		}
	}
	return nil
}

// tokens counts words and signs approximately, without CEL's grammar. It stops counting when the count exceeds [MaxTokens].
func tokens(text string) int {
	count, word := 0, false
	for i := 0; i < len(text) && count <= MaxTokens; i++ {
		switch c := text[i]; {
		case c == '\'' || c == '"':
			// The prefix of a raw text (r) or of bytes (b) was already counted as a word.
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
			// The second character of a sign such as && counts with the first.
		default:
			count, word = count+1, false
		}
	}
	return count
}

// endOfText returns the index of the closing quotation mark of the text that begins at start. An unclosed text ends at the end of
// the line or of the whole text.
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

// checkTree rejects a syntax tree that is too large or too deep before its types are checked.
func (e *Environment) checkTree(parsed *cel.Ast) *Error {
	syntax := parsed.NativeRep()
	m := &measurer{info: syntax.SourceInfo(), types: tree.Scope[int]{}, functions: e.functions}
	m.visit(syntax.Expr(), 1)
	if m.message == "" {
		return nil
	}
	return positioned(ReasonTooLong, parsed.Source().Content(), m.at, m.message)
}

// measurer walks through a syntax tree once, and stops when a limit is exceeded.
type measurer struct {
	info  *ast.SourceInfo
	nodes int
	// types maps variables to upper bounds of the sizes of their types.
	types tree.Scope[int]
	// functions are the functions of the environment. known is an upper bound of the number of types that the checker has
	// inferred so far. checks counts how many types the checker has copied.
	functions     map[string]*decls.FunctionDecl
	known, checks int
	// patterns is the total size of the constant regular expressions.
	patterns meter.Pattern
	message  string
	at       common.Location
}

func (m *measurer) refuse(expr ast.Expr, format string, limit int) {
	m.message, m.at = fmt.Sprintf(format, limit), m.info.GetStartLocation(expr.ID())
}

// visit counts a part, and returns an upper bound of the size of its type.
func (m *measurer) visit(expr ast.Expr, depth int) int {
	if m.message != "" {
		return 1
	}
	if m.nodes++; m.nodes > MaxNodes {
		m.refuse(expr, "the expression has more than %d parts after its macros are expanded: split it into several", MaxNodes)
		return 1
	}
	if depth > MaxDepth {
		m.refuse(expr, "the expression is nested more than %d levels deep: give parts a name with cel.bind, or split it into several", MaxDepth)
		return 1
	}
	size := m.typeOf(expr, depth+1)
	if m.check(expr); m.checks > MaxChecks && m.message == "" {
		m.refuse(expr, "the expression has too many calls and elements up to here, its types would be compared more than %d times: split it into several", MaxChecks)
	}
	if size > MaxTypeSize && m.message == "" {
		m.refuse(expr, "a type has more than %d names: nest fewer lists, maps and types", MaxTypeSize)
	}
	return size
}

// check counts the types that the checker copies for a part, without its operands.
func (m *measurer) check(expr ast.Expr) {
	attempts, found := 0, 0
	switch expr.Kind() {
	case ast.CallKind:
		attempts, found = m.overloads(expr.AsCall())
	case ast.ListKind:
		// Only an empty list adds a type: the checker infers its element type later.
		attempts, found = len(expr.AsList().Elements()), max(0, 1-len(expr.AsList().Elements()))
	case ast.MapKind:
		attempts, found = 2*len(expr.AsMap().Entries()), 2*max(0, 1-len(expr.AsMap().Entries()))
	case ast.StructKind:
		attempts = len(expr.AsStruct().Fields())
	case ast.ComprehensionKind:
		attempts, found = 4, 1
	}
	m.checks += attempts * m.known
	m.known += found
}

// overloads returns the number of overloads that the checker tries for a call (tried). found is an upper bound of the number of
// types that the call adds.
func (m *measurer) overloads(call ast.CallExpr) (tried, found int) {
	name, args, isMember := call.FunctionName(), call.Args(), call.IsMemberFunction()
	if name == operators.LogicalAnd || name == operators.LogicalOr {
		return len(args), 0
	}
	if isMember {
		// sets.contains(a, b) calls a function with a qualified name. The checker also looks for this name before it looks for
		// a member.
		if qualified := tree.QualifiedName(call.Target()) + "." + name; m.functions[qualified] != nil {
			name, isMember = qualified, false
		} else {
			args = slices.Insert(slices.Clone(args), 0, call.Target())
		}
	}
	function := m.functions[name]
	if function == nil {
		return 1, 1
	}
	for _, overload := range function.OverloadDecls() {
		if overload.IsMemberFunction() != isMember {
			continue
		}
		tried++
		if mayMatch(overload.ArgTypes(), args) {
			found = max(found, len(overload.TypeParams()))
		}
	}
	return tried, found
}

// mayMatch reports whether the arguments may have the given types. It returns false if an argument is surely a number, text or
// bool, but the type is a list, a map or another type with parameters.
func mayMatch(types []*cel.Type, args []ast.Expr) bool {
	for i, t := range types {
		if i < len(args) && len(t.Parameters()) > 0 && isScalar(args[i]) {
			return false
		}
	}
	return len(types) == len(args)
}

// isScalar reports whether the checker surely infers a number, a text or a bool for a part. It returns false for unknown types,
// because the checker may also treat them as lists.
func isScalar(expr ast.Expr) bool {
	switch expr.Kind() {
	case ast.LiteralKind:
		return expr.AsLiteral() != types.NullValue
	case ast.SelectKind:
		return expr.AsSelect().IsTestOnly()
	case ast.CallKind:
	default:
		return false
	}
	switch call := expr.AsCall(); call.FunctionName() {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In,
		operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, "size":
		return true
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		return isScalar(call.Args()[0]) || isScalar(call.Args()[1])
	default:
		return false
	}
}

func (m *measurer) typeOf(expr ast.Expr, depth int) int {
	switch expr.Kind() {
	case ast.IdentKind:
		if size, declared := m.types.Lookup(expr.AsIdent()); declared {
			return size
		}
		return 1
	case ast.SelectKind:
		return m.visit(expr.AsSelect().Operand(), depth)
	case ast.CallKind:
		return m.call(expr.AsCall(), depth)
	case ast.ListKind:
		return 1 + m.longest(expr.AsList().Elements(), depth)
	case ast.MapKind:
		keys, values := 1, 1
		for _, entry := range expr.AsMap().Entries() {
			keys = max(keys, m.visit(entry.AsMapEntry().Key(), depth))
			values = max(values, m.visit(entry.AsMapEntry().Value(), depth))
		}
		return 1 + keys + values
	case ast.StructKind:
		for _, field := range expr.AsStruct().Fields() {
			m.visit(field.AsStructField().Value(), depth)
		}
		return 1
	case ast.ComprehensionKind:
		return m.comprehension(expr.AsComprehension(), depth)
	default:
		return 1
	}
}

func (m *measurer) longest(parts []ast.Expr, depth int) int {
	result := 1
	for _, part := range parts {
		result = max(result, m.visit(part, depth))
	}
	return result
}

// call returns a bound for the type of a call: the largest type of an operand, plus one name if the call wraps it in an optional.
func (m *measurer) call(call ast.CallExpr, depth int) int {
	size := m.longest(call.Args(), depth)
	if call.IsMemberFunction() {
		size = max(size, m.visit(call.Target(), depth))
	}
	switch call.FunctionName() {
	case "matches", "find", "findAll":
		m.pattern(call.Args())
		return size
	case "type", "optional.of", "optional.ofNonZeroValue", "optional.none", operators.OptIndex, operators.OptSelect:
		return size + 1
	case operators.Equals, operators.NotEquals, "size", operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.In, "dyn":
		return 1
	default:
		return size
	}
}

// pattern checks a constant regular expression before it is compiled. It rejects the regular expression if it is too large,
// alone or together with earlier ones. Other mistakes in it are reported later.
func (m *measurer) pattern(args []ast.Expr) {
	for _, arg := range args {
		text, ok := tree.Literal[types.String](arg)
		if !ok {
			continue
		}
		if m.message != "" {
			return
		}
		of, err := meter.PatternOf(string(text))
		if tooLarge, ok := errors.AsType[*meter.PatternError](err); ok {
			m.message, m.at = tooLarge.Error(), m.info.GetStartLocation(arg.ID())
			return
		}
		m.patterns.Instructions += of.Instructions
		m.patterns.Parsing += of.Parsing
		if m.patterns.Instructions > meter.MaxPatternInstructions || m.patterns.Parsing > meter.MaxPatternParsing {
			m.message = "the regular expressions up to this one are too large together: split the expression into several, or write simpler ones"
			m.at = m.info.GetStartLocation(arg.ID())
		}
	}
}

// comprehension returns the size of the type of a loop's result.
func (m *measurer) comprehension(c ast.ComprehensionExpr, depth int) int {
	over, first := m.visit(c.IterRange(), depth), m.visit(c.AccuInit(), depth)
	m.types.Declare(c.AccuVar(), first)
	for _, name := range tree.IterVars(c) {
		m.types.Declare(name, max(1, over-1))
	}
	m.visit(c.LoopCondition(), depth)
	made := max(first, m.visit(c.LoopStep(), depth))
	m.types.Forget(append(tree.IterVars(c), c.AccuVar())...)
	m.types.Declare(c.AccuVar(), made)
	defer m.types.Forget(c.AccuVar())
	return m.visit(c.Result(), depth)
}
