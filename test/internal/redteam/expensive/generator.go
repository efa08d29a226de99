// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expensive generates CEL expressions that may take more time or memory than their CEL cost suggests, for fuzzing.
//
// The programs limit only the cost of an expression, so the time must be roughly proportional to the cost. For each overload of
// each function of an environment the package generates calls with operands of all sizes, nested and in loops. A string of
// bytes determines the expression, so that Go's fuzzing can search such strings:
//
//	make fuzz-expensive FUZZTIME=1h
package expensive

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Calls holds the overloads of functions that an expression of an environment can call.
type Calls struct {
	all       []*Call
	functions map[string]*decls.FunctionDecl
}

// NewCalls returns the overloads of the functions in a fixed order. It leaves out overloads that only macros call, and
// overloads for an authorizer, which the programs don't provide.
func NewCalls(functions map[string]*decls.FunctionDecl) *Calls {
	result := &Calls{functions: functions}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		if strings.Contains(name, "@") || strings.HasPrefix(name, "__not") || name == operators.OldIn || name == "in" {
			continue
		}
		overloads := slices.Clone(functions[name].OverloadDecls())
		slices.SortFunc(overloads, func(a, b *decls.OverloadDecl) int { return cmp.Compare(a.ID(), b.ID()) })
		for _, overload := range overloads {
			if !slices.ContainsFunc(overload.ArgTypes(), authorization) {
				result.all = append(result.all, &Call{name, overload})
			}
		}
	}
	return result
}

func authorization(t *types.Type) bool {
	return strings.HasPrefix(t.TypeName(), "kubernetes.authorization.")
}

// All returns the overloads.
func (c *Calls) All() []*Call { return c.all }

func (c *Calls) has(function string) bool { return c.functions[function] != nil }

// returning returns the overloads whose result has the type.
func (c *Calls) returning(t *types.Type) []*Call {
	var result []*Call
	for _, call := range c.all {
		if of := call.Overload.ResultType(); of.Kind() == t.Kind() && of.TypeName() == t.TypeName() && fits(of, t) {
			result = append(result, call)
		}
	}
	return result
}

// fits reports whether the two types become equal if type parameters are replaced suitably.
func fits(parameter, t *types.Type) bool {
	if parameter.Kind() == types.TypeParamKind {
		return true
	}
	if parameter.Kind() != t.Kind() || len(parameter.Parameters()) != len(t.Parameters()) {
		return false
	}
	for i, inner := range parameter.Parameters() {
		if !fits(inner, t.Parameters()[i]) {
			return false
		}
	}
	return true
}

// Expression generates an expression that calls an overload. The bytes of the genome determine everything else. The result may
// be an expression that does not compile. It is "" if the generator has no values for the type of a parameter.
func (c *Calls) Expression(call *Call, genome []byte) string {
	g := &generator{calls: c, genome: genome}
	text, ok := g.root(call)
	if !ok || len(text) > 2*mostLength {
		return ""
	}
	return text
}

const (
	// mostDepth is the maximum depth of nested calls.
	mostDepth = 3
	// mostLength is the approximate maximum length of an expression. The expression must be short enough for a constraint.
	mostLength = 8000
	// mostWritten is the maximum number of elements in a list literal.
	mostWritten = 40
)

// A generator generates one expression. Each choice consumes a byte of the genome. When no bytes are left, the simplest choice
// is taken.
type generator struct {
	calls  *Calls
	genome []byte
	// length is the total length of the parts so far. names is the number of variables so far.
	length, names int
	// loops is the number of loops around the current part.
	loops int
}

func (g *generator) choose(n int) int {
	if len(g.genome) == 0 || n <= 1 {
		return 0
	}
	choice := int(g.genome[0]) % n
	g.genome = g.genome[1:]
	return choice
}

func (g *generator) one(options ...string) string {
	result := options[g.choose(len(options))]
	g.length += len(result)
	return result
}

// repetitions returns how many times a text of the given length is repeated.
func (g *generator) repetitions(of int) int {
	n := []int{1, 2, 10, 50, 200, 1000, 3000}[g.choose(7)]
	return max(1, min(n, (mostLength-g.length)/max(1, of)))
}

// name returns an unused variable name.
func (g *generator) name() string {
	g.names++
	return fmt.Sprintf("v%d", g.names)
}

// root returns an expression of type bool that evaluates the call, usually in loops, and does little else.
func (g *generator) root(c *Call) (string, bool) {
	loops, size := g.choose(3), []int{1, 10, 30}[g.choose(3)]
	var before, after strings.Builder
	for range loops {
		fmt.Fprintf(&before, "[%s].all(l%d, ", strings.TrimSuffix(strings.Repeat("1,", size), ","), g.loops)
		after.WriteString(")")
		g.loops++
	}
	g.length += before.Len()
	call, ok := g.call(c, map[string]*types.Type{}, mostDepth)
	if !ok {
		return "", false
	}
	// The call may have any type. The size of a list that contains its result gives a bool.
	return before.String() + "[" + call + "].size() == 1" + after.String(), true
}

// call returns a call of the overload with operands of the right types.
func (g *generator) call(c *Call, bound map[string]*types.Type, depth int) (string, bool) {
	parameters := c.Overload.ArgTypes()
	arguments := make([]string, len(parameters))
	for i, t := range parameters {
		var ok bool
		if arguments[i], ok = g.value(g.concrete(t, bound), depth-1); !ok {
			return "", false
		}
	}
	return written(c, arguments), true
}

// concrete replaces the type parameters in t. All occurrences of a parameter in one call get the same type.
func (g *generator) concrete(t *types.Type, bound map[string]*types.Type) *types.Type {
	switch t.Kind() {
	case types.TypeParamKind:
		name := t.TypeName()
		if bound[name] == nil {
			bound[name] = []*types.Type{types.IntType, types.StringType, types.NewListType(types.IntType), types.BoolType, types.DoubleType}[g.choose(5)]
		}
		return bound[name]
	case types.ListKind:
		return types.NewListType(g.concrete(t.Parameters()[0], bound))
	case types.MapKind:
		return types.NewMapType(g.concrete(t.Parameters()[0], bound), g.concrete(t.Parameters()[1], bound))
	case types.OpaqueKind:
		if optional(t) {
			return types.NewOptionalType(g.concrete(t.Parameters()[0], bound))
		}
	}
	return t
}

// written returns the call as text.
func written(c *Call, arguments []string) string {
	name := c.Function
	if symbol, ok := operators.FindReverseBinaryOperator(name); ok && len(arguments) == 2 {
		return "(" + arguments[0] + " " + symbol + " " + arguments[1] + ")"
	}
	switch name {
	case operators.Conditional:
		return "(" + arguments[0] + " ? " + arguments[1] + " : " + arguments[2] + ")"
	case operators.Index:
		return arguments[0] + "[" + arguments[1] + "]"
	case operators.OptIndex:
		return arguments[0] + "[?" + arguments[1] + "]"
	case operators.OptSelect:
		return arguments[0] + ".?a"
	case operators.LogicalNot:
		return "!" + arguments[0]
	case "scores", "sets":
		arguments[0] = "managedCluster" // only this variable has the function
	case operators.Negate:
		return "-" + arguments[0]
	}
	if c.Overload.IsMemberFunction() {
		return arguments[0] + "." + name + "(" + strings.Join(arguments[1:], ", ") + ")"
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// A Call is an overload of a function that expressions should call.
type Call struct {
	Function string
	Overload *decls.OverloadDecl
}

// String returns the names of the function and of the overload.
func (c *Call) String() string { return c.Function + " " + c.Overload.ID() }

// value returns an operand of the type: a literal, a value that is doubled several times, or another call.
func (g *generator) value(t *types.Type, depth int) (string, bool) {
	if depth > 0 && g.length < mostLength {
		switch g.choose(6) {
		case 1, 2:
			if of := g.calls.returning(t); len(of) > 0 {
				c := of[g.choose(len(of))]
				if text, ok := g.call(c, bind(c.Overload.ResultType(), t), depth); ok {
					return text, true
				}
			}
		case 3:
			if text, ok := g.doubled(t, depth); ok {
				return text, true
			}
		}
	}
	return g.literal(t, depth)
}

// doubled returns an expression that adds a value to itself several times.
func (g *generator) doubled(t *types.Type, depth int) (string, bool) {
	switch t.Kind() {
	case types.StringKind, types.ListKind, types.BytesKind:
	default:
		return "", false
	}
	v, ok := g.literal(t, depth-1)
	if !ok {
		return "", false
	}
	var text strings.Builder
	n := []int{1, 3, 6, 9, 12, 15}[g.choose(6)]
	last := g.name()
	fmt.Fprintf(&text, "cel.bind(%s, %s, ", last, v)
	for range n {
		next := g.name()
		fmt.Fprintf(&text, "cel.bind(%s, %s + %s, ", next, last, last)
		last = next
	}
	g.length += text.Len()
	return text.String() + last + strings.Repeat(")", n+1), true
}

// literal returns a value without calls, if the type has literals.
func (g *generator) literal(t *types.Type, depth int) (string, bool) {
	switch t.Kind() {
	case types.BoolKind:
		return g.one("true", "false"), true
	case types.IntKind:
		if g.loops > 0 && g.choose(3) == 1 {
			return fmt.Sprintf("l%d", g.choose(g.loops)), true
		}
		return g.one("1", "0", "2", "7", "100", "1000", "100000", "-1", "9223372036854775807", "1700000000"), true
	case types.UintKind:
		return g.one("1u", "0u", "1000u", "18446744073709551615u"), true
	case types.DoubleKind:
		return g.one("1.5", "0.0", "1e308", "1e-308", "0.1", "-1.0"), true
	case types.StringKind:
		return g.text(), true
	case types.BytesKind:
		return "b" + g.text(), true
	case types.NullTypeKind:
		return "null", true
	case types.DurationKind:
		return g.one("duration('1h')", "duration('1h1m1s1ms1us1ns')", "duration('-1.5s')"), true
	case types.TimestampKind:
		return g.one("timestamp('2026-01-01T00:00:00Z')", "timestamp(0)", "timestamp('9999-12-31T23:59:59.999999999+12:00')"), true
	case types.TypeKind:
		return g.one("int", "type(1)", "list"), true
	case types.ListKind:
		return g.list(t.Parameters()[0], depth)
	case types.MapKind:
		return g.mapOf(t.Parameters()[0], t.Parameters()[1], depth)
	case types.DynKind, types.AnyKind, types.TypeParamKind:
		of := []*types.Type{types.IntType, types.StringType, types.NewListType(types.IntType), types.NewMapType(types.StringType, types.IntType)}[g.choose(4)]
		text, ok := g.literal(of, depth)
		return "dyn(" + text + ")", ok
	}
	if optional(t) {
		text, ok := g.value(t.Parameters()[0], depth-1)
		return "optional.of(" + text + ")", ok
	}
	return g.named(t)
}

// named returns a value of a type that has no literals, such as a quantity.
func (g *generator) named(t *types.Type) (string, bool) {
	switch t.TypeName() {
	case "kubernetes.Quantity":
		return g.one("quantity('1')", "quantity('1.5Gi')", "quantity('1e18')", "quantity('1e1000')", "quantity('123456789012345678901234567890')", "quantity('1e-9')"), true
	case "kubernetes.URL":
		return "url('https://user@example.com:80/" + strings.Repeat("a", g.repetitions(1)) + "?a=1&b=2&a=3#f')", true
	case "net.IP":
		return g.one("ip('10.1.2.3')", "ip('fe80::1')"), true
	case "net.CIDR":
		return g.one("cidr('10.0.0.0/8')", "cidr('fe80::/10')"), true
	case "kubernetes.Semver":
		return g.one("semver('1.2.3')", "semver('1.2.3-a.b.c.1.2.3+d.e.f')", "semver('1.0.0-"+strings.Repeat("a.", 300)+"a')"), true
	case "kubernetes.NamedFormat":
		return g.one("format.dns1123Label()", "format.dns1123Subdomain()", "format.uri()", "format.uuid()", "format.datetime()", "format.qualifiedName()", "format.byte()"), true
	}
	return "", false
}

// fragments are parts of string literals: inputs of functions, and parts of regular expressions.
var fragments = []string{
	"a", "a,", " ", "1", "9", "é", "😀", "%s", "%d%x", "1.", "/a", "a=1&", "[", "[1],", "1h", "%20", "A",
	"(a|b)*", "a?", ".*", "[a-z]+", "a{9}", "(a+)+", "\\\\pL", "b|", "\\\\\\\\", "-", "x.",
}

// whole holds strings that are complete inputs of functions, such as timestamps and quantities.
var whole = []string{
	"2026-01-01T00:00:00Z", "10.0.0.0/8", "10.1.2.3", "fe80::1", "1.2.3", "v1.2", "1e9", "1e1000", "1Gi", "America/New_York", "+12:00",
	"https://example.com/a?b=c", "%.9f", "true", "dns1123Label", "{\"a\": [1, 2.5, null]}", "(?i)\\\\pL{99}", "((a{9}){9}){9}", "1h2m3s", "-0x1",
}

// text returns a string literal.
func (g *generator) text() string {
	if g.choose(4) == 1 {
		return "'" + g.one(whole...) + "'"
	}
	var text strings.Builder
	for range 1 + g.choose(2) {
		of := fragments[g.choose(len(fragments))]
		text.WriteString(strings.Repeat(of, g.repetitions(len(of))))
	}
	g.length += text.Len()
	return "'" + text.String() + "'"
}

func (g *generator) list(of *types.Type, depth int) (string, bool) {
	element, ok := g.value(of, depth-1)
	if !ok {
		return "", false
	}
	switch g.choose(4) {
	case 1:
		if of.Kind() == types.IntKind && g.calls.has("lists.range") {
			return fmt.Sprintf("lists.range(%s)", g.one("10", "100", "1000", "5000", "20000", "100000")), true
		}
	case 2:
		v := g.name()
		g.length += len(element)
		return fmt.Sprintf("[1,2,3,4,5,6,7,8,9,10].map(%s, %s)", v, element), true
	case 3:
		other, ok := g.value(of, 0)
		return "[" + element + ", " + other + "]", ok
	}
	// Make the list long by doubling it in the expression. A long literal would only test the compiler.
	n := min(mostWritten, g.repetitions(len(element)+1))
	g.length += n * (len(element) + 1)
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]", true
}

func (g *generator) mapOf(key, value *types.Type, depth int) (string, bool) {
	v, ok := g.value(value, depth-1)
	if !ok {
		return "", false
	}
	switch key.Kind() {
	case types.StringKind, types.DynKind, types.TypeParamKind:
		n := min(mostWritten, g.repetitions(len(v)+8))
		entries := make([]string, n)
		for i := range entries {
			entries[i] = fmt.Sprintf("'k%d': %s", i, v)
		}
		entries[0] = "'a': " + v
		g.length += n * (len(v) + 8)
		return "{" + strings.Join(entries, ", ") + "}", true
	default:
		k, ok := g.value(key, depth-1)
		return "{" + k + ": " + v + "}", ok
	}
}

// bind returns the replacements of type parameters that make the first type equal to the second.
func bind(parameter, t *types.Type) map[string]*types.Type {
	bound := map[string]*types.Type{}
	var match func(p, t *types.Type)
	match = func(p, t *types.Type) {
		if p.Kind() == types.TypeParamKind {
			bound[p.TypeName()] = t
			return
		}
		for i, inner := range p.Parameters() {
			if i < len(t.Parameters()) {
				match(inner, t.Parameters()[i])
			}
		}
	}
	match(parameter, t)
	return bound
}

func optional(t *types.Type) bool {
	return t.Kind() == types.OpaqueKind && t.TypeName() == "optional_type"
}
