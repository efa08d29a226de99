// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package randomexpr generates random CEL expressions over "devices", for property tests.
//
//	text := randomexpr.Condition(t, randomexpr.Attributes{Domain: "d", Ints: []string{"x", "y"}, String: "s"})
//
// About half of the conjuncts are realistic relations, such as neighbours, spreads and groups, with random conditions inside.
// The other conjuncts use everything in grammar.txt: nested macros with one and two variables over the set, over filters of the
// set and over lists of values; cel.bind; arithmetic, aggregates, sets, strings, quantities, versions, optional values and
// conditionals. Many expressions fail for some devices, and a few don't compile.
package randomexpr

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"pgregory.net/rapid"
)

// Attributes has the names of the attributes that expressions read. All names must be identifiers, except the domain and the
// drivers. If a field is empty, expressions don't read such an attribute.
type Attributes struct {
	// Domain is the domain of the attributes.
	Domain string
	// Ints are attributes whose values are mostly ints. Some devices may lack them or have values of other types. Expressions
	// read the last of these attributes most often and the first one rarely. At least one attribute is required.
	Ints []string
	// String is an attribute whose value is mostly "a", "b" or "c". It is required.
	String string
	// Strings is an attribute whose value is mostly a list of "a", "b" and "c".
	Strings string
	// Version is an attribute whose value is mostly a version from 1.0.0 to 1.2.0.
	Version string
	// Bool is an attribute whose value is mostly a bool.
	Bool string
	// Capacity is a capacity whose value is mostly from 1Gi to 4Gi.
	Capacity string
	// Drivers are the possible drivers of a device.
	Drivers []string
}

// size is the approximate maximum number of parts of an expression.
const size = 24

// Condition generates a conjunction of up to three conditions. It may not compile, because CEL checks some types at compile
// time.
func Condition(t *rapid.T, attributes Attributes) string {
	a := attributes
	scope := map[string][]string{
		"whole": {"devices"}, "Domain": {a.Domain}, "First": a.Ints[:1], "Driver": a.Drivers,
		"Int": append(slices.Repeat(a.Ints[len(a.Ints)-1:], 7), a.Ints[0]),
	}
	for kind, name := range map[string]string{"String": a.String, "List": a.Strings, "Version": a.Version, "Bool": a.Bool, "Capacity": a.Capacity} {
		if name != "" {
			scope[kind] = []string{name}
		}
	}
	g := conditions().generator(t, size, scope)
	conjuncts := make([]string, rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3}).Draw(t, "conjuncts"))
	for i := range conjuncts {
		switch g.int(0, 5) {
		case 0, 1:
			conjuncts[i] = g.rule("relation", 1)
		case 2:
			conjuncts[i] = "(" + g.rule("relation", 1) + " || " + g.rule("relation", 1) + ")"
		default:
			conjuncts[i] = g.rule("condition", g.int(1, 3))
		}
	}
	return strings.Join(conjuncts, " && ")
}

//go:embed grammar.txt
var text string

var conditions = sync.OnceValue(func() Grammar { return Parse(text) })

// Grammar maps the names of rules to their alternatives. The head of grammar.txt explains its format.
type Grammar map[string]*alternatives

// alternatives has the alternatives of a rule. Once the expression has its maximum size or depth, only plain ones are used.
type alternatives struct{ plain, all []string }

// Parse parses a grammar.
func Parse(text string) Grammar {
	result := Grammar{}
	var last *alternatives
	for line := range strings.SplitSeq(text, "\n") {
		text, isAlternative := strings.CutPrefix(line, "  ")
		switch {
		case text == "--":
			last.plain = last.all
		case isAlternative:
			times := 1
			if weight, rest, ok := strings.Cut(text, " "); ok && strings.HasPrefix(weight, "*") {
				times, _ = strconv.Atoi(weight[1:])
				text = rest
			}
			last.all = append(last.all, slices.Repeat([]string{text}, times)...)
		case line != "" && line[0] != '#':
			last = &alternatives{}
			result[line] = last
		}
	}
	return result
}

// Write generates a text from a rule, which must have no plain alternatives. scope maps kinds to the names that the text may
// use.
func (g Grammar) Write(t *rapid.T, rule string, scope map[string][]string) string {
	return g.generator(t, size, scope).rule(rule, 1)
}

func (g Grammar) generator(t *rapid.T, size int, scope map[string][]string) *generator {
	return &generator{Grammar: g, t: t, left: size, known: map[string]string{}, scope: scope}
}

var (
	parts = regexp.MustCompile(`\$\?(\w+)|\$(\w+):(\??[a-zA-Z]+)(\d?)(?:<([^<>]*)>)?|\$(\w+)([+*!])(\w+)|\$(\w+)=|\$([a-zA-Z]+)(\d?)(?:<([^<>]*)>)?|\{([^{}]*)\}`)
	asked = regexp.MustCompile(`[$:]\?([A-Za-z]\w*)`)
)

type generator struct {
	Grammar
	t *rapid.T
	// scope maps kinds to the variables and attributes in scope. known maps names in an alternative to the texts generated for
	// them.
	scope map[string][]string
	known map[string]string
	// named is the number of variables so far. left is the number of parts that the expression may still get.
	named, left int
}

func (g *generator) int(least, most int) int { return rapid.IntRange(least, most).Draw(g.t, "int") }

func (g *generator) one(options []string) string { return rapid.SampledFrom(options).Draw(g.t, "one") }

// rule writes a random alternative of a rule whose kinds of names are in scope. Variables declared in the alternative end with
// it.
func (g *generator) rule(name string, depth int) string {
	r := g.Grammar[name]
	if r == nil {
		panic("the grammar has no rule " + name)
	}
	options := r.all
	if r.plain != nil {
		if g.left--; g.left < 0 || depth <= 0 {
			options = r.plain
		}
		depth--
	}
	var possible []string
	for _, option := range options {
		if !slices.ContainsFunc(asked.FindAllStringSubmatch(option, -1), func(kind []string) bool { return len(g.scope[kind[1]]) == 0 }) {
			possible = append(possible, option)
		}
	}
	scope, known := g.scope, g.known
	defer func() { g.scope, g.known = scope, known }()
	g.scope, g.known = maps.Clone(scope), maps.Clone(known)
	return g.write(g.one(possible), depth)
}

func (g *generator) write(text string, depth int) string {
	var result strings.Builder
	for text != "" {
		at := parts.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return text[at[2*i]:at[2*i+1]]
		}
		result.WriteString(text[:at[0]])
		switch {
		case group(1) != "":
			result.WriteString(g.one(g.scope[group(1)]))
		case group(2) != "":
			delete(g.known, group(3))
			g.known[group(2)] = g.textOf(group(3), group(4), group(5), depth)
		case group(6) != "":
			result.WriteString(g.declare(group(6), group(7), group(8)))
		case group(9) != "":
			g.known[group(9)] = g.newName()
			result.WriteString(g.known[group(9)])
		case group(10) != "":
			result.WriteString(g.textOf(group(10), group(11), group(12), depth))
		default:
			result.WriteString(g.choice(group(13), depth))
		}
		text = text[at[1]:]
	}
	return result.String() + text
}

// textOf returns the text for a name in an alternative: the text already generated for the name, a variable of a kind, or the
// text of a rule.
func (g *generator) textOf(name, depthOf, d string, depth int) string {
	if kind, ok := strings.CutPrefix(name, "?"); ok {
		return g.one(g.scope[kind])
	}
	if text, ok := g.known[name]; ok {
		return text
	}
	if depthOf != "" {
		depth, _ = strconv.Atoi(depthOf)
	}
	if d != "" {
		outer := g.known
		defer func() { g.known = outer }()
		d = g.write(d, depth)
		g.known = maps.Clone(outer)
		g.known["d"] = d
	}
	return g.rule(name, depth)
}

// choice writes one of the options that an alternative has in braces.
func (g *generator) choice(of string, depth int) string {
	if least, most, ok := strings.Cut(of, ".."); ok {
		from, _ := strconv.Atoi(least)
		to, _ := strconv.Atoi(most)
		return fmt.Sprint(g.int(from, to))
	}
	return g.write(g.one(strings.Split(of, ";")), depth)
}

// declare adds a variable to the scope. If the variable is new, it returns the variable's name.
func (g *generator) declare(variable, how, kind string) (written string) {
	if how != "!" {
		g.known[variable] = g.newName()
		if how == "*" && g.int(0, 29) == 29 {
			g.known[variable] = g.one(append([]string{"devices"}, g.scope["device"]...))
		}
		written = g.known[variable]
	}
	name := g.known[variable]
	for other, names := range g.scope {
		if other[0] >= 'a' {
			g.scope[other] = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
		}
	}
	g.scope[kind] = append(slices.Clone(g.scope[kind]), name)
	return written
}

func (g *generator) newName() string {
	name := fmt.Sprintf("%c", 'a'+g.named%16)
	if g.named >= 16 {
		name += fmt.Sprint(g.named / 16)
	}
	g.named++
	return name
}
