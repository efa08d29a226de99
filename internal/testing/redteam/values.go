// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

// lists are made large by one call, or gone through by calls that cost more than they
// say.
func lists() []Case {
	return attack(Time, Device,
		Case{Name: "range-distinct", Text: "lists.range(900000).distinct().size() > 0", Why: "distinct compares each element with all others"},
		Case{Name: "range-huge", Attack: Memory, Text: "lists.range(9000000000).size() > 0", Why: "the list is made before it is charged"},
		Case{Name: "range-of-max", Attack: Memory, Text: "lists.range(9223372036854775807).size() > 0", Why: "the largest number that there is"},
		Case{Name: "range-sort", Text: "lists.range(900000).reverse().sort().size() > 0", Why: "two copies and a sort in one step"},
		Case{Name: "range-sort-by", Text: "lists.range(200000).sortBy(x, -x).size() > 0", Why: "the keys are a second list"},
		Case{Name: "range-equal", Text: "lists.range(900000) == lists.range(900000)", Why: "an equality goes through all elements"},
		Case{Name: "range-in", Text: "lists.range(20000).all(x, x in lists.range(20000))", Why: "quadratic, and a new list each time"},
		Case{Name: "range-contains", Text: "sets.contains(lists.range(30000), lists.range(30000).reverse())", Why: "each element is looked for in the other list"},
		Case{Name: "range-equivalent", Text: "sets.equivalent(lists.range(30000), lists.range(30000).reverse())", Why: "the same in both directions"},
		Case{Name: "range-intersects", Text: "sets.intersects(lists.range(30000), lists.range(30000).map(x, x + 100000))", Why: "no two have an element in common, so all are compared"},
		Case{Name: "range-index-of", Text: "lists.range(20000).all(x, lists.range(20000).indexOf(19999 - x) >= 0)", Why: "indexOf goes through the list"},
		Case{Name: "range-flatten", Attack: Memory, Text: "lists.range(300000).map(x, [x]).flatten().size() > 0", Why: "a list for each element, then a copy"},
		Case{Name: "range-squared", Attack: Memory, Text: "lists.range(2000).map(x, lists.range(2000)).flatten().size() > 0", Why: "four million elements of two thousand"},
		Case{Name: "range-nested-map", Attack: Memory, Text: "lists.range(900).map(x, lists.range(9000)).size() > 0", Why: "lists are kept that were charged as one step"},
		Case{Name: "range-slice", Text: "lists.range(300000).all(x, lists.range(300000).slice(x, 300000).size() >= 0)", Why: "a slice is a copy"},
		Case{Name: "range-join", Attack: Memory, Text: "lists.range(500000).map(x, 'aaaaaaaaaaaaaaaaaaaa').join('bbbbbbbbbbbbbbbbbbbb').size() > 0", Why: "the text is made before it is charged"},
		Case{Name: "range-tracker", Text: "cel.bind(l, lists.range(40000), l.map(x, x).size() > 0)", Why: "what counts costs looks through its own stack"},
		Case{Name: "range-transform-map", Attack: Memory, Text: "lists.range(90000).transformMap(i, v, lists.range(100)).size() > 0", Why: "maps grow by one, and their values are free"},
		Case{Name: "range-map-entry", Attack: Memory, Text: "lists.range(90000).transformMapEntry(i, v, {string(i): [v, v, v, v]}).size() > 0", Why: "a map is made for each entry"},
		Case{Name: "range-key-collision", Text: "lists.range(90000).transformMapEntry(i, v, {0: v}).size() == 1", Why: "each entry has the key of the one before"},
		Case{Name: "devices-to-the-fourth", Attack: Memory, Devices: 32, Text: "devices.map(a, devices.map(b, devices.map(c, devices.map(d, devices)))).size() > 0", Why: "a million lists"},
		Case{Name: "devices-compared", Devices: 32, Text: "devices.map(a, devices.map(b, devices)) == devices.map(a, devices.map(b, devices))", Why: "lists of lists are compared element by element"},
	)
}

// doublings make values that are small in memory and huge to whoever goes through them.
func doublings() []Case {
	list := func(body string) string { return doubled(60, "[1]", sum, with(body)) }
	pair := func(v string) string { return "[" + v + ", " + v + "]" }
	entry := func(v string) string { return "{'a': " + v + ", 'b': " + v + "}" }
	both := Device | Cluster
	return attack(Time, both,
		Case{Name: "double-equal", Text: list("X == X"), Why: "a concatenation is a tree; sixty levels have 2^60 leaves"},
		Case{Name: "double-size", Text: list("X.size() > 0"), Why: "the size of a concatenation is counted anew each time"},
		Case{Name: "double-in", Text: list("2 in X"), Why: "nothing is found before the end"},
		Case{Name: "double-all", Text: list("X.all(x, x == 1)"), Why: "a loop without an end"},
		Case{Name: "double-index", Text: list("X[X.size() - 1] == 1"), Why: "an index goes down both sides"},
		Case{Name: "double-sum", Text: list("X.sum() > 0"), Why: "one call for all elements"},
		Case{Name: "double-max", Text: list("X.max() > 0"), Why: "one call for all elements"},
		Case{Name: "double-sorted", Text: list("X.isSorted()"), Why: "one call for all elements"},
		Case{Name: "double-index-of", Text: list("X.indexOf(2) < 0"), Why: "one call for all elements"},
		Case{Name: "double-contains", Text: list("sets.contains(X, X)"), Why: "one call for all pairs"},
		Case{Name: "double-distinct", Where: Device, Text: list("X.distinct().size() == 1"), Why: "one call for all elements"},
		Case{Name: "double-sort", Where: Device, Text: list("X.sort().size() > 0"), Why: "one call for all elements"},
		Case{Name: "double-reverse", Where: Device, Attack: Memory, Text: list("X.reverse().size() > 0"), Why: "a copy of all elements"},
		Case{Name: "double-slice", Where: Device, Attack: Memory, Text: list("X.slice(0, X.size()).size() > 0"), Why: "a copy of all elements"},
		Case{Name: "double-flatten", Where: Device, Attack: Memory, Text: doubled(60, "[[1]]", sum, with("X.flatten().size() > 0")), Why: "a copy of all elements"},
		Case{Name: "double-join", Attack: Memory, Text: doubled(60, "['a']", sum, with("X.join().size() > 0")), Why: "a text of all elements"},
		Case{Name: "double-format", Attack: Memory, Text: list("'%s'.format([X]).size() > 0"), Why: "a text of all elements"},
		Case{Name: "double-devices", Where: Device, Devices: 32, Text: doubled(50, "devices", sum, with("X == X")), Why: "the set itself, doubled"},
		Case{Name: "double-claims", Where: Cluster, Reported: Reported{Claims: map[string]string{"a": "b"}}, Text: doubled(50, "managedCluster.status.clusterClaims", sum, with("X == X")), Why: "a list of the cluster, doubled"},
		Case{Name: "double-26", Text: doubled(26, "[1]", sum, with("X == X")), Why: "few enough levels to end, after a minute"},
		Case{Name: "double-20", Text: doubled(20, "[1]", sum, with("X == X && X == X && X == X")), Why: "few enough levels to end within seconds"},
		Case{Name: "nest-equal", Text: doubled(60, "[1]", pair, with("X == X")), Why: "a list has another one twice; sixty levels"},
		Case{Name: "nest-in", Text: doubled(60, "[1]", pair, with("X in [X]")), Why: "the same, compared inside a call"},
		Case{Name: "nest-distinct", Where: Device, Text: doubled(60, "[1]", pair, with("[X, X].distinct().size() == 1")), Why: "the same, hashed or compared inside a call"},
		Case{Name: "nest-format", Attack: Memory, Text: doubled(40, "[1]", pair, with("'%s'.format([X]).size() > 0")), Why: "a text of 2^40 numbers"},
		Case{Name: "nest-flatten", Where: Device, Attack: Memory, Text: doubled(40, "[dyn(1)]", pair, with("dyn(X).flatten(100).size() > 0")), Why: "a list of 2^40 numbers"},
		Case{Name: "nest-dyn", Text: doubled(60, "dyn([1])", func(v string) string { return "dyn([" + v + ", " + v + "])" }, with("X == X")), Why: "the same without types"},
		Case{Name: "nest-maps", Text: doubled(60, "{'a': 1}", entry, with("X == X")), Why: "maps are compared by value"},
		Case{Name: "nest-maps-twins", Text: doubled(60, "[{'a': 1}, {'a': 1}]", func(v string) string {
			return "[{'a': " + v + "[0], 'b': " + v + "[0]}, {'a': " + v + "[1], 'b': " + v + "[1]}]"
		}, with("X[0] == X[1]")), Why: "nothing is the same object on both sides"},
		Case{Name: "nest-optionals", Text: doubled(60, "optional.of([1])", func(v string) string { return "optional.of([" + v + ", " + v + "])" }, with("X == X")), Why: "optional values are compared by value"},
		Case{Name: "double-bytes", Attack: Memory, Text: doubled(40, "b'aaaaaaaaaa'", sum, with("X == X")), Why: "each concatenation is a copy"},
		Case{Name: "double-bytes-of", Attack: Memory, Text: textOf(22, "[1,2,3,4,5,6,7,8].map(i, bytes(X)).size() > 0"), Why: "a conversion is a copy"},
	)
}
