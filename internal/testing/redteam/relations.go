// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import "fmt"

// relations use the functions over sets: rings that are hard to find, and lists that are long.
func relations() []Case {
	return attack(Time, Device,
		Case{Name: "relation-ring", Text: "lists.range(32).ring(a, b, (a < 15) != (b < 15))", Why: "two groups that differ in size have no ring, and to see that every way is gone"},
		Case{Name: "relation-ring-63", Text: "lists.range(63).ring(a, b, (a < 31) != (b < 31))", Why: "the same, with as many as a ring may have"},
		Case{Name: "relation-ring-64", Text: "lists.range(64).ring(a, b, true)", Why: "one more than that"},
		Case{Name: "relation-rings", Text: "lists.range(900).all(n, !lists.range(32).ring(a, b, (a < 15) != (b < 15)))", Why: "one after the other"},
		Case{Name: "relation-rings-of-rings", Text: "lists.range(20).ring(x, y, !lists.range(20).ring(a, b, (a < 9) != (b < 9)))", Why: "a ring is looked for, for each pair of another"},
		Case{Name: "relation-path", Text: "lists.range(63).path(a, b, (a < 30) != (b < 30))", Why: "a path has no place to begin, so that all are tried"},
		Case{Name: "relation-sparse", Text: "lists.range(48).ring(a, b, a / 6 == b / 6 || b == a + 6)", Why: "groups with few ways between them"},
		Case{Name: "relation-ring-memory", Attack: Memory, Text: "lists.range(300).map(n, lists.range(31).ring(a, b, (a < 15) != (b < 15))).size() > 0", Why: "what was found out about a ring is kept while it is looked for"},
		Case{Name: "relation-connected", Text: "lists.range(900000).connected(a, b, b == a + 1)", Why: "a relation of 900,000 elements has 8e11 pairs"},
		Case{Name: "relation-matrix", Attack: Memory, Text: "lists.range(3000).clique(a, b, true)", Why: "nine million bools"},
		Case{Name: "relation-devices", Devices: 32, Text: "(devices + devices + devices + devices).map(d, 1).clique(a, b, a == b)", Why: "the set several times"},
		Case{Name: "relation-nested", Devices: 32, Text: "devices.connected(a, b, devices.connected(c, d, devices.connected(e, f, a == b || c == d || e == f)))", Why: "a billion pairs"},
		Case{Name: "relation-paired", Text: "lists.range(900).paired(lists.range(900), a, b, a + b < 900)", Why: "each element pushes all before it to another partner"},
		Case{Name: "relation-paired-few", Text: "lists.range(600).paired(lists.range(2), a, b, b == 0)", Why: "one has all partners"},
		Case{Name: "relation-box", Attack: Memory, Text: "lists.range(90000).box(x, [x, x, x, x, x, x, x, x], [1, 1, 1, 1, 1, 1, 1, 1])", Why: "a list for each element, and one for each coordinate"},
		Case{Name: "relation-box-sides", Text: "[1].box(x, lists.range(900000), lists.range(900000), lists.range(900000))", Why: "900,000 coordinates"},
		Case{Name: "relation-box-circle", Text: "[0, 9223372036854775807].box(x, [x], [9223372036854775807], [9223372036854775807])", Why: "as many places as can be counted"},
		Case{Name: "relation-includes", Text: "dyn(lists.range(60000)).sameOrIncludes(lists.range(60000).map(x, -1 - x))", Why: "no element in common, so all are compared"},
		Case{Name: "relation-double", Text: doubled(60, "[1]", sum, with("X.connected(a, b, true)")), Why: "a list of 2^60 elements"},
		Case{Name: "relation-nest", Text: doubled(60, "[1]", func(v string) string { return "[" + v + ", " + v + "]" }, with("dyn(X).sameOrIncludes(X)")), Why: "a value of 2^60 values is compared"},
		Case{Name: "relation-types", Attack: Panic, Text: "[dyn(1), dyn('a'), dyn(devices), dyn(null)].connected(a, b, dyn(a) == dyn(b) || dyn([dyn(1)])[dyn('x')])", Why: "values that are no bools"},
		Case{Name: "relation-box-types", Attack: Panic, Text: "devices.box(d, dyn(d), dyn(devices), dyn({'a': 1}))", Why: "coordinates that are no lists"},
		Case{Name: "relation-names", Attack: Panic, Text: "devices.connected(devices, devices2, devices == devices2 && devices.driver.size() > devices2)", Why: "a name that hides the set"},
		Case{Name: "relation-compile", Attack: Compilation, Text: "devices" + times(90, ".filter(d, devices.ring(a, b, a == d))") + ".size() == 0", Why: "each macro is expanded into two loops"},
		Case{Name: "relation-compile-nested", Attack: Compilation, Text: nested(30, "devices.ring(a, b, ", "true", ")"), Why: "rings in rings"},
	)
}

// searchedRelations keep the search busy with what a partial set can become.
func searchedRelations() []Case {
	const index = "attributes['mla.example.com'].index"
	never := fmt.Sprintf(" && devices.map(d, d.%[1]s * (d.%[1]s + 7)).sum() %% 1000003 == 1000002", index)
	return attack(Time, Search,
		Case{Name: "search-ring", Devices: 15, Text: fmt.Sprintf("devices.ring(a, b, a.%[1]s %% 2 != b.%[1]s %% 2)", index), Why: "an odd ring between two groups does not exist"},
		Case{Name: "search-ring-never", Devices: 12, Text: fmt.Sprintf("devices.ring(a, b, (a.%[1]s * b.%[1]s + 3) %% 7 < 3)", index) + never, Why: "many rings, and something else that holds for none of them"},
		Case{Name: "search-path-never", Devices: 12, Text: fmt.Sprintf("devices.path(a, b, (a.%[1]s * b.%[1]s + 3) %% 7 < 2)", index) + never, Why: "many paths"},
		Case{Name: "search-connected-never", Devices: 16, Text: fmt.Sprintf("devices.connected(a, b, a.%[1]s + 1 == b.%[1]s || a.%[1]s + 5 == b.%[1]s)", index) + never, Why: "many sets that are connected"},
		Case{Name: "search-paired-never", Devices: 12, Text: fmt.Sprintf("devices.filter(d, d.%[1]s %% 2 == 0).paired(devices.filter(d, d.%[1]s %% 2 == 1), a, b, (a.%[1]s + b.%[1]s) %% 3 > 0)", index) + never, Why: "many couples, in lists of any length"},
		Case{Name: "search-box-never", Devices: 8, Text: fmt.Sprintf("devices.box(d, [d.%[1]s %% 8, d.%[1]s / 8, d.%[1]s %% 5, d.%[1]s %% 3], [8, 4, 3, 2], [8, 9, 5, 3])", index) + never, Why: "boxes in all orders, around all ends"},
	)
}
