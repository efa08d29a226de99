// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package randomexpr

import "fmt"

// relation is what people write about sets. Each of them tells sets of a few devices
// apart: some satisfy it and some don't.
func (g *generator) relation() string {
	set := g.devices(1)
	return g.choose(
		func() string { return g.spread(set) },
		func() string { return g.spread(set) },
		func() string { return g.neighbours(set) },
		func() string { return g.neighbours(set) },
		func() string { return g.groups(set) },
		func() string { return g.groups(set) },
		func() string { return g.totals(set) },
		func() string { return g.values(set) },
		func() string { return g.ordered(set) },
		func() string { return g.ordered(set) },
		func() string { return g.versioned(set) },
		func() string { return g.joined(set) },
		func() string { return g.joined(set) },
		func() string { return g.box(set) },
	)
}

// joined asks which devices are joined, with the functions of package library.
func (g *generator) joined(set string) string {
	return g.within(&g.scope.devices, func(d string) string {
		return g.within(&g.scope.devices, func(o string) string {
			related := g.related(d, o)
			if g.oneIn(4) {
				return fmt.Sprintf("%s.paired(%s, %s, %s, %s)", set, g.devices(1), d, o, related)
			}
			return fmt.Sprintf("%s.%s(%s, %s, %s)", set, g.one("connected", "clique", "ring", "path"), d, o, related)
		})
	})
}

// box asks where the devices are.
func (g *generator) box(set string) string {
	return g.within(&g.scope.devices, func(d string) string {
		sides := "[" + g.number(1, 3) + ", " + g.number(1, 3) + "]"
		if g.oneIn(2) {
			sides += ", [" + g.one("0", "4") + ", " + g.number(3, 5) + "]"
		}
		return fmt.Sprintf("%s.box(%s, [%s, %s], %s)", set, d, g.attribute(d), g.attribute(d), sides)
	})
}

// spread: the values are close together, or far from each other.
func (g *generator) spread(set string) string {
	return g.within(&g.scope.devices, func(v string) string {
		a := g.attribute(v)
		values := fmt.Sprintf("%s.map(%s, %s)", set, v, a)
		n := g.number(0, 4)
		return g.choose(
			func() string { return values + ".max() - " + values + ".min()" + g.one(" == ", " <= ", " > ") + n },
			func() string {
				return fmt.Sprintf("cel.bind(%s, %s, %s.max() - %s.min()%s%s)", v, values, v, v, g.one(" == ", " <= "), n)
			},
			func() string {
				return fmt.Sprintf("cel.bind(q, %s.min(), %s.all(%s, %s - q <= %s))", values, set, v, a, n)
			},
			func() string { return values + g.one(".max() == ", ".max() != ") + values + ".min()" },
			func() string {
				return fmt.Sprintf("[0, 1, 2].exists(q, %s.all(%s, %s >= q && %s <= q + 2))", set, v, a, a)
			},
			func() string { return values + g.one(".max() < ", ".min() > ", ".min() == ", ".max() == ") + n },
		)
	})
}

// neighbours: each device has some others that fit it.
func (g *generator) neighbours(set string) string {
	return g.within(&g.scope.devices, func(d string) string {
		return g.within(&g.scope.devices, func(o string) string {
			body := g.related(d, o)
			return fmt.Sprintf(g.one(
				"%[1]s.all(%[2]s, %[1]s.filter(%[3]s, %[2]s != %[3]s && %[4]s).size() >= %[5]s)",
				"%[1]s.all(%[2]s, %[1]s.exists(%[3]s, %[2]s != %[3]s && %[4]s))",
				"%[1]s.all(%[2]s, %[1]s.exists_one(%[3]s, %[4]s))",
				"%[1]s.exists(%[2]s, %[1]s.all(%[3]s, %[2]s == %[3]s || %[4]s))",
				"%[1]s.all(%[2]s, %[1]s.all(%[3]s, %[2]s == %[3]s || %[4]s))",
				"%[1]s.filter(%[2]s, %[1]s.exists(%[3]s, %[4]s)).size() == %[5]s",
				"%[1]s.map(%[2]s, %[1]s.filter(%[3]s, %[4]s).size()).sum() >= %[5]s",
				"%[1]s.exists_one(%[2]s, %[1]s.exists(%[3]s, %[4]s))",
			), set, d, o, body, g.number(1, 3))
		})
	})
}

func (g *generator) related(d, o string) string {
	return g.choose(
		func() string { return g.adjacent(d, o) },
		func() string { return g.adjacent(d, o) },
		func() string { return g.name(d) + " == " + g.name(o) },
		g.aboutDevices,
		func() string { return g.condition(1) },
	)
}

// groups: how many devices have something in common.
func (g *generator) groups(set string) string {
	return g.within(&g.scope.devices, func(d string) string {
		s, a, n := g.name(d), g.attribute(d), g.number(1, 3)
		other := fmt.Sprintf("%s.filter(q, q.attributes['%s'].%s == %s).size()", set, g.attributes.Domain, g.attributes.String, s)
		return g.choose(
			func() string {
				return fmt.Sprintf("%s.map(%s, %s).distinct().size()%s%s", set, d, s, g.one(" == ", " <= ", " >= "), n)
			},
			func() string {
				return fmt.Sprintf("%s.map(%s, %s).distinct().size() == %s.size()", set, d, g.one(s, a), set)
			},
			func() string {
				return fmt.Sprintf("%s.all(%s, %s%s%s)", set, d, other, g.one(" == ", " <= ", " >= "), n)
			},
			func() string {
				return fmt.Sprintf("%s.map(%s, %s).min() == %s.map(%s, %s).max()", set, d, s, set, d, s)
			},
			func() string {
				return fmt.Sprintf("%s.filter(%s, %s).size()%s%s.filter(%s, %s).size()", set, d, g.condition(1), g.one(" == ", " <= "), set, d, g.condition(1))
			},
			func() string {
				return fmt.Sprintf("%s.filter(%s, %s).size()%s%s", set, d, g.condition(1), g.one(" == ", " <= ", " >= "), n)
			},
		)
	})
}

// totals: sums and what is left of them.
func (g *generator) totals(set string) string {
	return g.within(&g.scope.devices, func(d string) string {
		sum := fmt.Sprintf("%s.map(%s, %s).sum()", set, d, g.device(1)(d))
		return g.choose(
			func() string { return sum + g.one(" == ", " <= ", " > ") + g.number(2, 9) },
			func() string { return sum + " % " + g.number(2, 3) + " == " + g.number(0, 1) },
			func() string { return fmt.Sprintf("%s.map(%s, %s).sum() >= %s", set, d, g.memory(d), sum) },
			func() string { return sum + " / " + set + ".size()" + g.one(" == ", " >= ") + g.number(1, 2) },
		)
	})
}

// values: which there are.
func (g *generator) values(set string) string {
	return g.within(&g.scope.devices, func(d string) string {
		names := fmt.Sprintf("%s.map(%s, %s)", set, d, g.name(d))
		values := fmt.Sprintf("%s.map(%s, %s)", set, d, g.attribute(d))
		return g.choose(
			func() string { return "sets.contains(" + names + ", ['a', 'b'])" },
			func() string { return "sets.contains(['a', 'b'], " + names + ")" },
			func() string { return "sets.equivalent(" + names + ", ['a', 'c'])" },
			func() string { return "!sets.intersects(" + values + ", [1, 3])" },
			func() string { return g.one("'a'", "'b'") + " in " + names },
			func() string { return g.number(0, 4) + " in " + values },
			func() string { return values + ".exists_one(q, q == " + g.number(0, 4) + ")" },
			func() string { return names + ".all(q, q in ['a', 'b'])" },
			func() string { return "['a', 'b'].all(q, " + names + ".exists(r, r == q))" },
			func() string { return "['a', 'b'].exists(q, " + set + ".all(" + d + ", " + g.name(d) + " == q))" },
			func() string { return names + ".filter(q, q == 'a').size() == " + g.number(1, 2) },
		)
	})
}

// ordered: the places of devices in the set matter.
func (g *generator) ordered(set string) string {
	return g.within(&g.scope.devices, func(d string) string {
		values := fmt.Sprintf("%s.map(%s, %s)", set, d, g.attribute(d))
		return g.choose(
			func() string { return values + ".isSorted()" },
			func() string { return values + g.one(".sort()", "") + "[0] == " + g.number(0, 3) },
			func() string {
				return g.attribute(set+"[0]") + g.one(" + 1 == ", " == ", " < ") + g.attribute(set+"[1]")
			},
			func() string {
				return fmt.Sprintf("%[1]s.all(q, %[2]s, q == 0 || %[3]s%[4]s%[5]s)", set, d, g.attribute(set+"[q - 1]"), g.one(" <= ", " != "), g.attribute(d))
			},
			func() string {
				return fmt.Sprintf("%[1]s.all(q, %[2]s, %[1]s.all(r, s, q >= r || %[3]s%[4]s%[5]s))", set, d, g.attribute(d), g.one(" <= ", " != "), g.attribute("s"))
			},
			func() string { return fmt.Sprintf("%s.all(%s, %s == %s)", set, d, g.name(d), g.name(set+"[0]")) },
			func() string { return fmt.Sprintf("%s.exists(q, %s, q == %s)", set, d, g.attribute(d)) },
			func() string {
				return fmt.Sprintf("%s.transformList(q, %s, %s - q).distinct().size()%s%s", set, d, g.attribute(d), g.one(" == ", " <= "), g.number(1, 2))
			},
			func() string { return values + ".indexOf(" + g.number(0, 4) + ")" + g.one(" == ", " >= ", " < ") + "1" },
		)
	})
}

// versioned compares what is neither an int nor a string, if devices have such.
func (g *generator) versioned(set string) string {
	return g.within(&g.scope.devices, func(d string) string {
		return g.within(&g.scope.devices, func(o string) string {
			body := g.choose(func() string { return g.aboutOthers(d, o) }, func() string { return g.aboutValues(d) })
			return fmt.Sprintf("%[1]s.all(%[2]s, %[1]s.%[3]s(%[4]s, %[5]s))", set, d, g.one("all", "exists"), o, body)
		})
	})
}
