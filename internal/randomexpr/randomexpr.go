// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package randomexpr writes random CEL expressions over "devices", for property
// tests of what reads such expressions. They use the macros, aggregates and
// operators that expressions over sets are made of, in any nesting, and many of them
// fail for some devices.
package randomexpr

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// Attributes are what the expressions read. All names must be identifiers.
type Attributes struct {
	// Domain of the attributes.
	Domain string
	// Ints are attributes that are mostly ints; some devices may lack them or have
	// something else. The first one is read least.
	Ints []string
	// String is an attribute that mostly is one of "a", "b", "c".
	String string
}

// Condition draws an expression that is a conjunction of up to three conditions. It
// need not compile: types are known at run time only, but not all of them.
func Condition(t *rapid.T, attributes Attributes) string {
	g := &generator{t: t, attributes: attributes}
	var conjuncts []string
	for range g.int(1, 3) {
		conjuncts = append(conjuncts, g.condition(g.int(1, 3)))
	}
	return strings.Join(conjuncts, " && ")
}

type generator struct {
	t          *rapid.T
	attributes Attributes
	// variables are the iteration variables in scope, named is how many there were.
	variables []string
	named     int
}

func (g *generator) choose(options ...func() string) string {
	return options[rapid.IntRange(0, len(options)-1).Draw(g.t, "choice")]()
}

func (g *generator) int(least, most int) int { return rapid.IntRange(least, most).Draw(g.t, "int") }

func (g *generator) one(options ...string) string {
	return rapid.SampledFrom(options).Draw(g.t, "one")
}

func (g *generator) condition(depth int) string {
	if depth == 0 {
		return g.simple()
	}
	return g.choose(
		g.simple,
		func() string { return "!(" + g.condition(depth-1) + ")" },
		func() string {
			return "(" + g.condition(depth-1) + g.one(" && ", " || ") + g.condition(depth-1) + ")"
		},
		func() string {
			return "(" + g.condition(depth-1) + " ? " + g.condition(depth-1) + " : " + g.condition(depth-1) + ")"
		},
		func() string { return g.quantified(depth) },
		func() string { return g.quantified(depth) },
		func() string {
			return g.quantity(depth-1) + g.one(" == ", " != ", " < ", " <= ", " > ", " >= ") + g.quantity(depth-1)
		},
		func() string {
			return g.quantity(depth-1) + g.one(" == ", " >= ", " <= ") + fmt.Sprint(g.int(0, 5))
		},
	)
}

// simple is about devices in scope, or the set as a whole.
func (g *generator) simple() string {
	if len(g.variables) == 0 {
		return g.one("true", "devices.size() == 3", g.attribute("devices[0]")+" == 1", "devices.size() > 1",
			"devices[0] == devices[1]", "devices.exists(a, "+g.attribute("a")+" == 2)", "1 / 0 == 1")
	}
	d, o := g.variable(), g.variable()
	return g.choose(
		func() string { return g.attribute(d) + g.one(" == ", " < ", " >= ") + fmt.Sprint(g.int(0, 4)) },
		func() string { return g.attribute(d) + g.one(" == ", " < ", " != ") + g.attribute(o) },
		func() string { return d + g.one(" == ", " != ") + o },
		func() string { return "has(" + g.read(d, g.attributes.Ints[0]) + ")" },
		func() string {
			return g.read(d, g.attributes.String) + g.one(" == ", " != ") + g.read(o, g.attributes.String)
		},
		func() string {
			return fmt.Sprintf("(%s != %s && (%s == %s + 1 || %s == %s - 1))", d, o, g.attribute(d), g.attribute(o), g.attribute(d), g.attribute(o))
		},
		func() string { return g.read(d, g.attributes.String) + " in ['a', 'b']" },
	)
}

func (g *generator) variable() string { return g.one(g.variables...) }

func (g *generator) attribute(d string) string {
	name := g.attributes.Ints[len(g.attributes.Ints)-1]
	if g.int(0, 3) == 0 {
		name = g.attributes.Ints[0]
	}
	return g.read(d, name)
}

func (g *generator) read(d, name string) string {
	return fmt.Sprintf("%s.attributes['%s'].%s", d, g.attributes.Domain, name)
}

// within calls f with one more variable in scope.
func (g *generator) within(f func(variable string) string) string {
	name := string(rune('a' + g.named%26))
	g.named++
	g.variables = append(g.variables, name)
	defer func() { g.variables = g.variables[:len(g.variables)-1] }()
	return f(name)
}

func (g *generator) list(depth int) string {
	if depth == 0 || g.int(0, 2) > 0 {
		return "devices"
	}
	list := g.list(depth - 1)
	return g.within(func(v string) string {
		return fmt.Sprintf("%s.filter(%s, %s)", list, v, g.condition(depth-1))
	})
}

func (g *generator) quantified(depth int) string {
	list := g.list(depth - 1)
	return g.within(func(v string) string {
		return fmt.Sprintf("%s.%s(%s, %s)", list, g.one("all", "exists", "exists_one", "all"), v, g.condition(depth-1))
	})
}

func (g *generator) quantity(depth int) string {
	if depth <= 0 {
		return fmt.Sprint(g.int(-1, 5))
	}
	return g.choose(
		func() string { return g.list(depth) + ".size()" },
		func() string { return "size(" + g.list(depth) + ")" },
		func() string { return g.aggregate(depth) },
		func() string { return g.aggregate(depth) },
		func() string {
			return "(" + g.quantity(depth-1) + g.one(" + ", " - ", " * ") + g.quantity(depth-1) + ")"
		},
		func() string {
			return "(" + g.condition(depth-1) + " ? " + g.quantity(depth-1) + " : " + g.quantity(depth-1) + ")"
		},
	)
}

func (g *generator) aggregate(depth int) string {
	list := g.list(depth - 1)
	return g.within(func(v string) string {
		value := g.choose(
			func() string { return g.attribute(v) },
			func() string { return g.attribute(v) + " * 2 - 1" },
			func() string { return g.read(v, g.attributes.String) },
			func() string { return g.quantity(depth - 1) },
		)
		switch end := g.one("max()", "min()", "sum()", "distinct().size()"); {
		case g.int(0, 3) == 0:
			return fmt.Sprintf("%s.map(%s, %s, %s).%s", list, v, g.condition(depth-1), value, end)
		default:
			return fmt.Sprintf("%s.map(%s, %s).%s", list, v, value, end)
		}
	})
}
