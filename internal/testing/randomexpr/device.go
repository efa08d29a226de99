// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package randomexpr

import "fmt"

// aboutDevices compares devices in scope with each other and with constants.
func (g *generator) aboutDevices() string {
	d, o := g.one(g.scope.devices...), g.one(g.scope.devices...)
	return g.choose(
		func() string {
			return g.attribute(d) + g.one(" == ", " < ", " >= ", " % 2 == ", " / 2 == ") + g.number(-1, 4)
		},
		func() string { return g.attribute(d) + g.one(" == ", " < ", " != ") + g.attribute(o) },
		func() string { return d + g.one(" == ", " != ") + o },
		func() string { return "has(" + g.read(d, g.attributes.Ints[0]) + ")" },
		func() string { return g.name(d) + g.one(" == ", " != ") + g.name(o) },
		func() string { return g.attribute(d) + ".sameOrIncludes(" + g.attribute(o) + ")" },
		func() string { return g.adjacent(d, o) },
		func() string { return g.name(d) + " in " + g.one("['a', 'b']", "['c']") },
		func() string { return g.aboutText(d, o) },
		func() string { return g.aboutText(d, o) },
		func() string { return g.guarded(d) + g.one(" == ", " < ", " != ") + g.guarded(o) },
		func() string { return g.aboutOthers(d, o) },
		func() string { return g.aboutOthers(d, o) },
		func() string { return g.aboutValues(d) },
	)
}

// adjacent: side by side in a line, or in a ring.
func (g *generator) adjacent(d, o string) string {
	a, b := g.attribute(d), g.attribute(o)
	return g.choose(
		func() string { return fmt.Sprintf("(%s != %s && (%s == %s + 1 || %s == %s - 1))", d, o, a, b, a, b) },
		func() string { return fmt.Sprintf("(%s + 1) %% 5 == %s", a, b) },
		func() string { return fmt.Sprintf("(%s - %s) * (%s - %s) == 1", a, b, a, b) },
		func() string { return fmt.Sprintf("[-1, 1].exists(q, %s + q == %s)", a, b) },
		func() string { return fmt.Sprintf("cel.bind(q, %s - %s, q == 1 || q == -1)", a, b) },
	)
}

func (g *generator) aboutText(d, o string) string {
	a, b := g.name(d), g.name(o)
	return g.choose(
		func() string { return a + ".startsWith(" + b + ")" },
		func() string {
			return a + "." + g.one("matches('[ab]')", "lowerAscii() == 'b'", "endsWith('c')", "size() == 1")
		},
		func() string {
			return "(" + a + " + " + b + ")." + g.one("contains('ab')", "split('b').size() == 2", "indexOf('a') == 1")
		},
		func() string { return "(" + a + " + ',' + " + b + ").split(',').exists(q, q == 'a')" },
		func() string { return a + g.one(" < ", " >= ") + b },
		func() string { return "string(" + g.attribute(d) + ") == '1'" },
	)
}

// guarded reads what may be missing.
func (g *generator) guarded(d string) string {
	name := g.attributes.Ints[0]
	return g.choose(
		func() string { return fmt.Sprintf("%s.attributes['%s'].?%s.orValue(0)", d, g.attributes.Domain, name) },
		func() string { return fmt.Sprintf("(has(%s) ? %s : 0)", g.read(d, name), g.read(d, name)) },
		func() string {
			return fmt.Sprintf("('%s' in %s.attributes['%s'] ? 1 : 0)", name, d, g.attributes.Domain)
		},
	)
}

// aboutOthers reads the attributes that need not be there.
func (g *generator) aboutOthers(d, o string) string {
	var options []func() string
	if name := g.attributes.Version; name != "" {
		a, b := g.read(d, name), g.read(o, name)
		options = append(options,
			func() string { return a + g.one(" == ", " != ") + b },
			func() string { return a + ".compareTo(" + b + ") <= 0" },
			func() string { return a + "." + g.one("isLessThan", "isGreaterThan") + "(semver('1.1.0'))" },
			func() string { return a + "." + g.one("minor() == 1", "major() == 1") },
		)
	}
	if name := g.attributes.Bool; name != "" {
		options = append(options,
			func() string { return g.read(d, name) },
			func() string { return g.read(d, name) + " == " + g.read(o, name) },
		)
	}
	if name := g.attributes.Capacity; name != "" {
		a, b := g.capacity(d), g.capacity(o)
		options = append(options,
			func() string { return a + ".compareTo(quantity('2Gi')) >= 0" },
			func() string { return a + "." + g.one("isGreaterThan", "isLessThan") + "(" + b + ")" },
			func() string { return a + ".add(" + b + ").isLessThan(quantity('5Gi'))" },
			func() string { return a + " == " + b },
		)
	}
	if len(g.attributes.Drivers) > 0 {
		options = append(options,
			func() string { return d + ".driver" + g.one(" == ", " != ") + o + ".driver" },
			func() string { return d + ".driver == '" + g.one(g.attributes.Drivers...) + "'" },
			func() string {
				return d + ".allowMultipleAllocations" + g.one("", " == "+o+".allowMultipleAllocations")
			},
			func() string { return d + ".allowMultipleAllocations" },
		)
	}
	if len(options) == 0 {
		return g.attribute(d) + " == " + g.attribute(o)
	}
	return g.choose(options...)
}

// aboutValues reads an attribute that is a list.
func (g *generator) aboutValues(d string) string {
	if g.attributes.Strings == "" {
		return g.name(d) + " == 'a'"
	}
	list := g.read(d, g.attributes.Strings)
	return g.choose(
		func() string { return "'a' in " + list },
		func() string { return g.name(g.one(g.scope.devices...)) + " in " + list },
		func() string { return list + ".exists(q, q == " + g.name(d) + ")" },
		func() string { return list + ".size() == " + g.number(1, 2) },
		func() string { return "sets.intersects(" + list + ", ['b', 'c'])" },
	)
}

// attribute is an int of the device.
func (g *generator) attribute(d string) string {
	name := g.attributes.Ints[len(g.attributes.Ints)-1]
	if g.oneIn(8) {
		name = g.attributes.Ints[0]
	}
	return g.read(d, name)
}

// name is a string of the device.
func (g *generator) name(d string) string { return g.read(d, g.attributes.String) }

// memory is a capacity as an int, if devices have any.
func (g *generator) memory(d string) string {
	if g.attributes.Capacity == "" {
		return g.attribute(d)
	}
	return g.capacity(d) + ".asInteger() / 1073741824"
}

func (g *generator) capacity(d string) string {
	return fmt.Sprintf("%s.capacity['%s'].%s", d, g.attributes.Domain, g.attributes.Capacity)
}

func (g *generator) read(d, name string) string {
	if g.oneIn(12) {
		return fmt.Sprintf("%s.attributes[%s.driver].%s", d, d, name)
	}
	return fmt.Sprintf("%s.attributes['%s'].%s", d, g.attributes.Domain, name)
}
