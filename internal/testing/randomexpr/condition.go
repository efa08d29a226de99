// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package randomexpr

import "fmt"

// condition is a bool.
func (g *generator) condition(depth int) string {
	if depth <= 0 || g.isSpent() {
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
		func() string { return g.quantifiedPairs(depth) },
		func() string { return g.quantifiedValues(depth) },
		func() string { return g.comparison(depth) },
		func() string { return g.comparison(depth) },
		func() string { return g.membership(depth) },
		func() string { return g.boundCondition(depth) },
		g.relation,
	)
}

// simple is about devices and values in scope, or the set as a whole.
func (g *generator) simple() string {
	switch {
	case len(g.scope.devices) > 0 && !g.oneIn(8):
		return g.aboutDevices()
	case len(g.scope.strings) > 0 && g.oneIn(2):
		return g.one(g.scope.strings...) + g.one(" == ", " != ", " < ") + g.one("'a'", "'b'", "'c'")
	case len(g.scope.ints) > 0 && g.oneIn(2):
		return g.one(g.scope.ints...) + g.one(" == ", " < ", " >= ", " % 2 == ") + g.number(0, 3)
	case len(g.scope.intLists) > 0 && g.oneIn(2):
		return g.one(g.scope.intLists...) + "." + g.one("max() > 2", "size() == 3", "exists(q, q == 1)", "isSorted()", "sum() < 6")
	}
	return g.aboutSet()
}

func (g *generator) aboutSet() string {
	set := g.set()
	return g.choose(
		func() string { return set + ".size()" + g.one(" == ", " > ", " != ", " <= ") + g.number(1, 4) },
		func() string { return g.attribute(set+"[0]") + g.one(" == ", " < ", " != ") + g.number(0, 4) },
		func() string { return set + "[0] == " + set + "[1]" },
		func() string {
			return g.attribute(set+"["+set+".size() - 1]") + g.one(" > ", " == ") + g.attribute(set+"[0]")
		},
		func() string { return set + ".exists(q, " + g.attribute("q") + " == " + g.number(0, 3) + ")" },
		func() string { return g.one("true", "true", "false", "1 / 0 == 1", set+".size() / 2 == 1") },
	)
}

// quantified asks about the devices of a set.
func (g *generator) quantified(depth int) string {
	set := g.devices(depth - 1)
	return g.withinHiding(&g.scope.devices, func(v string) string {
		return fmt.Sprintf("%s.%s(%s, %s)", set, g.one("all", "exists", "exists_one", "all"), v, g.condition(depth-1))
	})
}

// quantifiedPairs asks about devices and their places.
func (g *generator) quantifiedPairs(depth int) string {
	set := g.devices(depth - 1)
	return g.withinHiding(&g.scope.ints, func(i string) string {
		return g.withinHiding(&g.scope.devices, func(v string) string {
			return fmt.Sprintf("%s.%s(%s, %s, %s)", set, g.one("all", "exists", "existsOne", "all"), i, v, g.condition(depth-1))
		})
	})
}

// quantifiedValues asks about values that the devices have.
func (g *generator) quantifiedValues(depth int) string {
	list, variables := g.ints(depth-1), &g.scope.ints
	if g.oneIn(3) {
		list, variables = g.strings(depth-1), &g.scope.strings
	}
	return g.withinHiding(variables, func(v string) string {
		return fmt.Sprintf("%s.%s(%s, %s)", list, g.one("all", "exists", "exists_one"), v, g.condition(depth-1))
	})
}

func (g *generator) comparison(depth int) string {
	operator := g.one(" == ", " != ", " < ", " <= ", " > ", " >= ")
	return g.choose(
		func() string { return g.quantity(depth-1) + operator + g.quantity(depth-1) },
		func() string { return g.quantity(depth-1) + operator + g.number(0, 5) },
		func() string { return g.number(0, 5) + operator + g.quantity(depth-1) },
		func() string {
			list := g.ints(depth - 1)
			return list + ".min()" + operator + list + ".max()"
		},
		func() string { return g.text(depth-1) + operator + g.text(depth-1) },
		func() string { return g.ints(depth-1) + g.one(" == ", " != ") + g.ints(depth-1) },
	)
}

func (g *generator) membership(depth int) string {
	return g.choose(
		func() string { return g.quantity(depth-1) + " in " + g.ints(depth-1) },
		func() string { return g.text(depth-1) + " in " + g.strings(depth-1) },
		func() string {
			return fmt.Sprintf("sets.%s(%s, %s)", g.one("contains", "equivalent", "intersects"), g.strings(depth-1), g.strings(depth-1))
		},
		func() string {
			return fmt.Sprintf("sets.%s(%s, %s)", g.one("contains", "equivalent", "intersects"), g.ints(depth-1), g.ints(depth-1))
		},
		func() string { return g.one(g.ints(depth-1), g.strings(depth-1)) + ".isSorted()" },
		func() string {
			return g.ints(depth-1) + ".sort() == " + g.one("[0, 1]", "[1, 1, 2]", "[3]", "[2, 1]", g.ints(depth-1)+".sort()")
		},
		func() string { return g.strings(depth-1) + ".sort() in [['a'], ['a', 'b'], ['a', 'a', 'c']]" },
		func() string { return "lists.range(3).filter(k, k == " + g.quantity(depth-1) + ").size() == 1" },
		func() string {
			if len(g.scope.devices) == 0 {
				return g.devices(depth-1) + " == " + g.devices(depth-1)
			}
			return g.one(g.scope.devices...) + " in " + g.devices(depth-1)
		},
	)
}

// boundCondition gives something a name.
func (g *generator) boundCondition(depth int) string {
	return g.bind(depth, func() string { return g.condition(depth - 1) })
}

// bind gives something a name that body may use.
func (g *generator) bind(depth int, body func() string) string {
	value, variables := g.quantity(depth-1), &g.scope.ints
	switch g.int(0, 5) {
	case 0:
		value, variables = g.devices(depth-1), &g.scope.sets
	case 1:
		value, variables = g.ints(depth-1), &g.scope.intLists
	case 2:
		value, variables = g.text(depth-1), &g.scope.strings
	case 3:
		if len(g.scope.devices) > 0 {
			value, variables = g.one(g.scope.devices...), &g.scope.devices
		}
	}
	return g.withinHiding(variables, func(v string) string {
		return fmt.Sprintf("cel.bind(%s, %s, %s)", v, value, body())
	})
}
