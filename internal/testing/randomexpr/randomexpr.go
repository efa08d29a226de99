// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package randomexpr writes random CEL expressions over "devices", for property
// tests of what reads such expressions.
//
//	text := randomexpr.Condition(t, randomexpr.Attributes{Domain: "d", Ints: []string{"x", "y"}, String: "s"})
//
// About half of what is joined by "&&" are relations as people write them, such as
// neighbours, spreads and groups, with random conditions in them ([generator.relation]).
// The rest is anything that the grammar allows: macros with one and two variables
// in any nesting, over the set, filters of it and lists of values; cel.bind around
// everything; arithmetic, aggregates, sets, strings, quantities, versions,
// optional values, conditionals. Many expressions fail for some devices, and a few
// don't compile.
package randomexpr

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// Attributes are what the expressions read. All names but the domain and the drivers
// must be identifiers. What is empty is not read.
type Attributes struct {
	// Domain of the attributes.
	Domain string
	// Ints are attributes that are mostly ints; some devices may lack them or have
	// something else. The first one is read least. There must be one.
	Ints []string
	// String is an attribute that mostly is one of "a", "b", "c". There must be one.
	String string
	// Strings is an attribute that mostly is a list of such strings.
	Strings string
	// Version is an attribute that mostly is a version from 1.0.0 to 1.2.0.
	Version string
	// Bool is an attribute that mostly is a bool.
	Bool string
	// Capacity is one of mostly 1Gi to 4Gi.
	Capacity string
	// Drivers that a device may be of.
	Drivers []string
}

// size is how many parts an expression may be composed of, about.
const size = 24

// Condition draws an expression that is a conjunction of up to three conditions. It
// need not compile: types are known at run time only, but not all of them.
func Condition(t *rapid.T, attributes Attributes) string {
	g := &generator{t: t, attributes: attributes, left: size}
	conjuncts := make([]string, rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3}).Draw(t, "conjuncts"))
	for i := range conjuncts {
		switch g.int(0, 5) {
		case 0, 1:
			conjuncts[i] = g.relation()
		case 2:
			conjuncts[i] = "(" + g.relation() + " || " + g.relation() + ")"
		default:
			conjuncts[i] = g.condition(g.int(1, 3))
		}
	}
	return strings.Join(conjuncts, " && ")
}

type generator struct {
	t          *rapid.T
	attributes Attributes
	scope      scope
	// named is how many variables there were, left how many parts there may still be.
	named, left int
}

// scope is the variables that may be used, by what they stand for.
type scope struct {
	devices, sets, ints, strings, intLists []string
	// hidden: "devices" is one of them and not the set.
	hidden bool
}

func (g *generator) choose(options ...func() string) string {
	return options[rapid.IntRange(0, len(options)-1).Draw(g.t, "choice")]()
}

func (g *generator) int(least, most int) int { return rapid.IntRange(least, most).Draw(g.t, "int") }

func (g *generator) number(least, most int) string { return fmt.Sprint(g.int(least, most)) }

func (g *generator) one(options ...string) string {
	return rapid.SampledFrom(options).Draw(g.t, "one")
}

func (g *generator) oneIn(n int) bool { return g.int(0, n-1) == n-1 }

// isSpent tells that the expression is long enough.
func (g *generator) isSpent() bool {
	g.left--
	return g.left < 0
}

// within calls f with one more variable in scope, among the given ones.
func (g *generator) within(variables *[]string, f func(variable string) string) string {
	return g.withinAs(g.newName(), variables, f)
}

// withinHiding is within, but now and then the name is that of a variable which is in
// scope already, or of the set. f must not use what was written before.
func (g *generator) withinHiding(variables *[]string, f func(variable string) string) string {
	name, outer := g.newName(), g.scope
	defer func() { g.scope = outer }()
	if g.oneIn(30) {
		name = g.hide(name)
	}
	return g.withinAs(name, variables, f)
}

func (g *generator) newName() string {
	name := fmt.Sprintf("%c", 'a'+g.named%16)
	if g.named >= 16 {
		name += fmt.Sprint(g.named / 16)
	}
	g.named++
	return name
}

func (g *generator) withinAs(name string, variables *[]string, f func(variable string) string) string {
	outer := g.scope
	*variables = append(without(*variables, name), name)
	defer func() { g.scope = outer }()
	return f(name)
}

// hide picks a name that hides another one, if there is one to hide.
func (g *generator) hide(name string) string {
	switch {
	case g.oneIn(4):
		name = "devices"
		g.scope.hidden = true
	case len(g.scope.devices) > 0:
		name = g.one(g.scope.devices...)
		g.scope.devices = without(g.scope.devices, name)
	}
	return name
}

// without is a new slice.
func without(names []string, name string) []string {
	var result []string
	for _, n := range names {
		if n != name {
			result = append(result, n)
		}
	}
	return result
}
