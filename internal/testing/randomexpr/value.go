// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package randomexpr

import "fmt"

// set is a list of devices that has a name.
func (g *generator) set() string {
	switch {
	case len(g.scope.sets) > 0 && (g.scope.hidden || g.oneIn(3)):
		return g.one(g.scope.sets...)
	case g.scope.hidden:
		return "[" + g.one(append(g.scope.devices, "devices")...) + "]"
	default:
		return "devices"
	}
}

// devices is a list of devices.
func (g *generator) devices(depth int) string {
	if depth <= 0 || !g.oneIn(3) || g.isSpent() {
		return g.set()
	}
	set := g.devices(depth - 1)
	return g.choose(
		func() string { return g.filtered(set, depth) },
		func() string { return g.filtered(set, depth) },
		func() string { return g.filtered(set, depth) },
		func() string {
			return fmt.Sprintf("(%s ? %s : %s)", g.condition(depth-1), set, g.devices(depth-1))
		},
		func() string { return set + g.one(".reverse()", ".slice(0, 1)", ".distinct()") },
		func() string { return "(" + set + " + " + g.set() + ")" },
	)
}

func (g *generator) filtered(set string, depth int) string {
	return g.withinHiding(&g.scope.devices, func(v string) string {
		return fmt.Sprintf("%s.filter(%s, %s)", set, v, g.condition(depth-1))
	})
}

// ints is a list of ints.
func (g *generator) ints(depth int) string {
	if len(g.scope.intLists) > 0 && g.oneIn(2) {
		return g.one(g.scope.intLists...)
	}
	if depth < 0 || g.oneIn(6) {
		return g.one("[0, 1, 2]", "[1, 3]", "[0, 4]", "[2, 2, 3]")
	}
	set := g.devices(depth - 1)
	return g.choose(
		func() string { return g.mapped(set, depth, g.device(depth)) },
		func() string { return g.mapped(set, depth, g.device(depth)) },
		func() string { return g.mapped(set, depth, g.device(depth)) + g.one(".distinct()", ".sort()") },
		func() string {
			return g.within(&g.scope.ints, func(i string) string {
				return g.within(&g.scope.devices, func(v string) string {
					return fmt.Sprintf("%s.transformList(%s, %s, %s)", set, i, v, g.one(i+" * "+g.attribute(v), g.attribute(v)+" - "+i, g.attribute(v)))
				})
			})
		},
		func() string {
			list := g.ints(depth - 1)
			return g.withinHiding(&g.scope.ints, func(v string) string {
				return fmt.Sprintf("%s.filter(%s, %s)", list, v, g.condition(depth-1))
			})
		},
	)
}

// strings is a list of strings.
func (g *generator) strings(depth int) string {
	if depth < 0 || g.oneIn(4) {
		return g.one("['a', 'b']", "['c']", "['a', 'b', 'c']")
	}
	return g.mapped(g.devices(depth-1), depth, g.name)
}

// mapped is what value says of each device of a set, or of those that meet a condition.
func (g *generator) mapped(set string, depth int, value func(string) string) string {
	return g.withinHiding(&g.scope.devices, func(v string) string {
		if g.oneIn(4) {
			return fmt.Sprintf("%s.map(%s, %s, %s)", set, v, g.condition(depth-1), value(v))
		}
		return fmt.Sprintf("%s.map(%s, %s)", set, v, value(v))
	})
}

// device makes the int that stands for a device.
func (g *generator) device(depth int) func(string) string {
	return func(v string) string {
		return g.choose(
			func() string { return g.attribute(v) },
			func() string { return g.attribute(v) },
			func() string { return g.attribute(v) + g.one(" * 2 - 1", " % 2", " / 2", " - 2", " + 10") },
			func() string { return g.quantity(depth - 1) },
			func() string { return "(" + g.condition(depth-1) + " ? 1 : 0)" },
			func() string { return g.memory(v) },
		)
	}
}

// quantity is an int.
func (g *generator) quantity(depth int) string {
	if len(g.scope.ints) > 0 && g.oneIn(3) {
		return g.one(g.scope.ints...)
	}
	if depth <= 0 || g.isSpent() {
		return g.number(-1, 5)
	}
	return g.choose(
		func() string { return g.devices(depth) + ".size()" },
		func() string { return "size(" + g.devices(depth) + ")" },
		func() string { return g.ints(depth) + g.one(".max()", ".min()", ".sum()", ".distinct().size()") },
		func() string { return g.ints(depth) + g.one(".max()", ".min()", ".sum()", ".size()", "[0]") },
		func() string { return g.strings(depth) + g.one(".distinct().size()", ".size()", ".indexOf('b')") },
		func() string { return g.ints(depth) + ".sort()" + g.one("[0]", "[1]", "[2]") },
		func() string {
			return g.within(&g.scope.devices, func(v string) string {
				return g.attribute(fmt.Sprintf("devices.sortBy(%s, %s)[%s]", v, g.attribute(v), g.number(0, 2)))
			})
		},
		func() string {
			return "(" + g.quantity(depth-1) + g.one(" + ", " - ", " * ", " % ", " / ") + g.quantity(depth-1) + ")"
		},
		func() string {
			return "(" + g.condition(depth-1) + " ? " + g.quantity(depth-1) + " : " + g.quantity(depth-1) + ")"
		},
		func() string { return "-(" + g.quantity(depth-1) + ")" },
		func() string { return g.bind(depth, func() string { return g.quantity(depth - 1) }) },
	)
}

// text is a string.
func (g *generator) text(depth int) string {
	switch {
	case len(g.scope.devices) > 0 && !g.oneIn(4):
		return g.name(g.one(g.scope.devices...))
	case len(g.scope.strings) > 0 && g.oneIn(2):
		return g.one(g.scope.strings...)
	case depth > 0:
		return g.strings(depth-1) + g.one(".max()", ".min()", ".join()", "[0]")
	default:
		return g.one("'a'", "'b'", "'c'")
	}
}
