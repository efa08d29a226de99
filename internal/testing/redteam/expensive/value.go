// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package expensive

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
)

// value is an operand of a type: written out, doubled a few times, or the result of a call.
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

// doubled adds a value to itself.
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

// literal is a value without calls, but for types that have no other ones.
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

// named are types that only functions make, by their names.
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

// fragments are what texts are made of: what functions read, and what patterns are.
var fragments = []string{
	"a", "a,", " ", "1", "9", "é", "😀", "%s", "%d%x", "1.", "/a", "a=1&", "[", "[1],", "1h", "%20", "A",
	"(a|b)*", "a?", ".*", "[a-z]+", "a{9}", "(a+)+", "\\\\pL", "b|", "\\\\\\\\", "-", "x.",
}

// whole are texts that have a meaning.
var whole = []string{
	"2026-01-01T00:00:00Z", "10.0.0.0/8", "10.1.2.3", "fe80::1", "1.2.3", "v1.2", "1e9", "1e1000", "1Gi", "America/New_York", "+12:00",
	"https://example.com/a?b=c", "%.9f", "true", "dns1123Label", "{\"a\": [1, 2.5, null]}", "(?i)\\\\pL{99}", "((a{9}){9}){9}", "1h2m3s", "-0x1",
}

// text is a literal.
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
	// Long lists are made by doubling: written out, it is the compiler that is measured.
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

// bind says what the parameters of a type stand for where it is another type.
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
