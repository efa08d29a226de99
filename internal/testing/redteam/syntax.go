// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import (
	"fmt"
	"strings"
)

// nesting is for parsers and for whatever else goes down a tree.
func nesting() []Case {
	return attack(Compilation, Anywhere,
		Case{Name: "deep-lists", Text: nested(240, "[", "1", "]") + " == []", Why: "a type as deep as the text, and a copy of it at each level"},
		Case{Name: "deep-lists-empty", Text: nested(240, "[", "", "]") + " == []", Why: "the same with an unknown type inside"},
		Case{Name: "deeper-lists", Text: nested(2400, "[", "1", "]") + " == []", Why: "deeper than the parser goes"},
		Case{Name: "deepest-lists", Where: Cluster, Text: nested(49000, "[", "1", "]") + " == []", Why: "as deep as a text can be"},
		Case{Name: "deep-lists-unclosed", Text: times(9000, "[") + "1", Why: "the parser tries to recover"},
		Case{Name: "deep-maps", Text: nested(200, "{'a': ", "1", "}") + " == {}", Why: "the same with maps"},
		Case{Name: "deeper-maps", Text: nested(1000, "{1: ", "1", "}") + " == {}", Why: "deeper than the parser goes"},
		Case{Name: "deep-keys", Text: nested(200, "{", "1", ": 1}") + " == {}", Why: "maps as keys of maps"},
		Case{Name: "deep-parentheses", Text: nested(4000, "(", "true", ")"), Why: "they make no difference but to the parser"},
		Case{Name: "deep-not", Text: times(9000, "!") + "true", Why: "signs are counted, or nested"},
		Case{Name: "deep-not-parentheses", Text: nested(2000, "!(", "true", ")"), Why: "signs that can't be counted"},
		Case{Name: "deep-minus", Text: times(8999, "-") + "1 < 0", Why: "signs are counted, or nested"},
		Case{Name: "deep-minus-spaces", Text: nested(2000, "-(", "1", ")") + " > 0", Why: "signs that can't be counted"},
		Case{Name: "deep-conditional", Text: times(900, "true?") + "true" + times(900, ":true"), Why: "conditions in the middle"},
		Case{Name: "deep-conditional-right", Text: times(900, "false?true:") + "true", Why: "conditions at the end"},
		Case{Name: "deep-select", Text: "{'a': 1}" + times(4000, ".a") + " == 1", Why: "a chain of fields"},
		Case{Name: "deep-optional", Text: "{'a': 1}" + times(3000, ".?a") + " == optional.of(1)", Why: "a chain of fields that may be missing"},
		Case{Name: "deep-index", Text: "[1]" + times(3000, "[0]") + " == 1", Why: "a chain of indices"},
		Case{Name: "deep-index-inside", Text: nested(2000, "[0][", "0", "]") + " == 0", Why: "indices in indices"},
		Case{Name: "deep-calls", Text: nested(1200, "size([", "1", "])") + " == 1", Why: "calls in calls"},
		Case{Name: "deep-members", Text: "'a'" + times(900, ".trim()") + " == 'a'", Why: "calls on calls"},
		Case{Name: "deep-macros", Text: nested(100, "[1].all(x, ", "x == 1", ")"), Why: "each macro is a loop with a scope"},
		Case{Name: "deep-macros-range", Text: nested(100, "[1].map(x, ", "x", ")") + " == []", Why: "a type for each level"},
		Case{Name: "deep-macros-target", Text: "[1]" + times(600, ".map(x, x)") + " == [1]", Why: "loops over loops"},
		Case{Name: "deep-macros-filter", Text: "[1]" + times(500, ".filter(x, true)") + ".size() == 1", Why: "each keeps the type of the one before"},
		Case{Name: "deep-binds", Text: doubled(250, "1", func(v string) string { return v + "+1" }, with("X > 0")), Why: "a scope for each name"},
		Case{Name: "deep-types", Text: nested(300, "type(", "1", ")") + " == type", Why: "types of types"},
		Case{Name: "deep-dyn", Text: nested(1500, "dyn(", "true", ")"), Why: "types that are unknown"},
		Case{Name: "just-deep-parentheses", Text: nested(120, "(", "true", ")"), Why: "as deep as the parser goes, about"},
		Case{Name: "just-deep-not", Text: nested(80, "!(", "true", ")"), Why: "as deep as the parser goes, about"},
		Case{Name: "just-deep-conditional", Text: times(60, "false?true:(") + "true" + times(60, ")"), Why: "as deep as the parser goes, about"},
		Case{Name: "just-deep-select", Text: "has({'a': 1}" + times(110, ".a") + ")", Why: "a chain of fields that the parser takes"},
		Case{Name: "just-deep-optional", Text: "{'a': dyn(1)}" + times(110, ".?a") + ".hasValue()", Why: "a chain of optional fields that the parser takes"},
		Case{Name: "just-deep-index", Text: "dyn([1])" + times(110, "[0]") + " == 1", Why: "a chain of indices that the parser takes"},
		Case{Name: "just-deep-calls", Text: nested(70, "size([", "1", "])") + " == 1", Why: "calls in calls that the parser takes"},
		Case{Name: "just-deep-members", Text: "'a'" + times(110, ".trim()") + " == 'a'", Why: "calls on calls that the parser takes"},
		Case{Name: "just-deep-filter", Text: "[1]" + times(100, ".filter(x, true)") + ".size() == 1", Why: "loops over loops that the parser takes"},
		Case{Name: "just-deep-filter-all", Text: "[1,2,3,4,5]" + times(60, ".map(x, [x]).filter(y, y.all(z, z == z))") + ".size() == 1", Why: "types that grow from loop to loop"},
		Case{Name: "just-deep-binds", Text: doubled(75, "1", func(v string) string { return v + "+1" }, with("X > 0")), Why: "scopes that the parser takes"},
		Case{Name: "just-deep-types", Text: nested(80, "type(", "1", ")") + " == type", Why: "types of types that the parser takes"},
		Case{Name: "just-deep-sum", Text: joined(115, "1", "+") + " > 0", Why: "operators that the checker takes"},
		Case{Name: "just-deep-sum-lists", Text: joined(110, "[[1]]", "+") + " == []", Why: "lists of lists that are added"},
		Case{Name: "deep-messages", Text: nested(400, "a{b: ", "1", "}") + " == 1", Why: "messages that don't exist"},
	)
}

// long is for what is linear, or not.
func long() []Case {
	numbers := numbered(1900, ",", func(i int) string { return fmt.Sprint(i) })
	return attack(Compilation, Anywhere,
		Case{Name: "long-sum", Text: joined(4900, "1", "+") + " > 0", Why: "operators of one precedence lean to one side"},
		Case{Name: "long-sum-100000", Where: Cluster, Text: joined(49990, "1", "+") + " > 0", Why: "the longest that is parsed"},
		Case{Name: "long-or", Text: joined(1600, "true", "||"), Why: "logic is balanced"},
		Case{Name: "long-or-100000", Where: Cluster, Text: joined(16600, "true", "||"), Why: "the longest that is parsed"},
		Case{Name: "long-and-errors", Text: joined(420, "a.b == c", " && "), Why: "an error for each name, each with a line of source"},
		Case{Name: "long-and-errors-100000", Where: Cluster, Text: joined(8300, "a.b == c", " && "), Why: "an error for each name, each with a line of 100,000 letters"},
		Case{Name: "long-syntax-errors", Where: Cluster, Text: times(30000, "? "), Why: "the parser recovers again and again"},
		Case{Name: "long-syntax-errors-mixed", Where: Cluster, Text: times(9000, "[(}])"), Why: "the parser recovers again and again"},
		Case{Name: "long-list", Text: "1 in [" + numbers + "]", Why: "made a set when it is planned"},
		Case{Name: "long-list-100000", Where: Cluster, Text: "1 in [" + joined(49980, "1", ",") + "]", Why: "a type for each element"},
		Case{Name: "long-lists-equal", Text: "[" + numbers + "] == []", Why: "a constant of thousands"},
		Case{Name: "long-list-of-lists", Where: Cluster, Text: "[" + joined(24000, "[]", ",") + "] == [" + joined(8000, "[]", ",") + "]", Why: "unknown types that are one in the end"},
		Case{Name: "long-list-mixed", Where: Cluster, Text: "[" + joined(6000, "1,'a',[],{}", ",") + "].size() > 0", Why: "types that are none in the end"},
		Case{Name: "long-map", Text: "{" + numbered(1000, ",", func(i int) string { return fmt.Sprintf("%d:1", i) }) + "} == {}", Why: "keys and values"},
		Case{Name: "long-map-same-keys", Where: Cluster, Text: "{" + joined(20000, "1:1", ",") + "}.size() == 1", Why: "one key again and again"},
		Case{Name: "long-text", Text: "'" + times(9900, "a") + "' == ''", Why: "a constant"},
		Case{Name: "long-escapes", Text: "'" + times(900, `\U0001F600`) + "'.size() > 0", Why: "ten letters are one"},
		Case{Name: "long-escapes-100000", Where: Cluster, Text: "'" + times(24000, `\x41`) + "'.size() > 0", Why: "four letters are one"},
		Case{Name: "long-escapes-wrong", Text: "'" + times(1200, `\xZZ`) + "' == ''", Why: "an error that quotes it"},
		Case{Name: "long-text-unclosed", Text: "'" + times(9900, "a"), Why: "a token without an end"},
		Case{Name: "long-name", Text: times(9900, "a") + " == 1", Why: "a name that the error quotes"},
		Case{Name: "long-names", Text: times(2400, "a.b.") + "c == 1", Why: "all prefixes are looked up as names"},
		Case{Name: "long-names-100000", Where: Cluster, Text: times(24900, "a.b.") + "c == 1", Why: "all prefixes are looked up as names"},
		Case{Name: "long-number", Text: times(9900, "9") + " > 1", Why: "a number that the error quotes"},
		Case{Name: "long-exponent", Text: "1e" + times(4000, "9") + " > 1.0 || 0." + times(4000, "1") + " > 1.0", Why: "numbers that are infinite"},
		Case{Name: "long-comment", Text: "true //" + times(9900, "a"), Why: "nothing"},
		Case{Name: "long-lines", Where: Cluster, Text: times(49000, "\n") + "true", Why: "each line has an offset"},
		Case{Name: "long-lines-errors", Where: Cluster, Text: times(7500, "\na.b ==\n c &&") + " true", Why: "errors, each looked up by line"},
		Case{Name: "long-line-failure", Attack: Time, Text: "'" + times(9900, "a") + "'.charAt(-1) == ''", Why: "a caret is put below a long line"},
		Case{Name: "long-line-failure-100000", Attack: Time, Where: Cluster, Text: "'" + times(99900, "a") + "'.charAt(-1) == ''", Why: "a caret is put below a long line"},
		Case{Name: "long-line-failures", Attack: Time, Where: Cluster, Text: "'" + times(60000, "\U0001F600") + "' == '' || " + joined(900, "'a'.charAt(9) == '' ", "||"), Why: "a failure for each, on a long line of wide letters"},
		Case{Name: "long-line-mistakes", Where: Cluster, Text: "'" + times(98000, "a") + "' == " + joined(120, "a.b", " + "), Why: "a mistake for each name, on a long line"},
		Case{Name: "long-calls", Text: joined(350, "'a'.matches('a')", "&&"), Why: "a pattern for each"},
		Case{Name: "long-calls-100000", Where: Cluster, Text: numbered(1900, "&&", func(i int) string { return fmt.Sprintf(`'a'.matches('(?i)\\pL{50}%d')`, i) }), Why: "a large pattern for each"},
		Case{Name: "long-calls-unknown", Text: joined(420, "f(1, 'a')", " && "), Why: "an error for each, with a signature"},
		Case{Name: "long-arguments", Text: "f(" + joined(4900, "1", ",") + ") && 'a'.matches(" + joined(20, "'a'", ",") + ")", Why: "an error with all types"},
		Case{Name: "long-greatest", Where: Cluster, Text: "math.greatest(" + joined(20000, "1", ",") + ") > 0", Why: "arguments are made a list by a macro"},
		Case{Name: "long-macros", Text: joined(330, "[1].all(x, x == 1)", "&&"), Why: "loops side by side"},
		Case{Name: "long-macros-100000", Where: Cluster, Text: joined(4900, "[1].all(x, x == 1)", "&&"), Why: "loops side by side"},
		Case{Name: "long-letters", Where: Cluster, Text: "'" + times(99900, "\U0001F600") + "'.size() > 0", Why: "four bytes for each letter"},
		Case{Name: "long-letters-10000", Where: Cluster, Text: "'" + times(10000, "\U0001F600") + "'.size() > 0", Why: "as many as there may be, none of which the lexer has seen"},
		Case{Name: "long-letters-comment", Where: Cluster, Text: "true // " + times(99000, "\u00e9"), Why: "not even an expression"},
		Case{Name: "too-long", Where: Cluster, Text: times(100000, "(1)+") + "1 > 0", Why: "longer than what is parsed"},
	)
}

// macros copy their target, or expand to much.
func macros() []Case {
	chained := func(n int, call string) string { return times(n, call) }
	return attack(Compilation, Anywhere,
		Case{Name: "opt-map", Text: "optional.of(1)" + chained(10, ".optMap(x, x)") + " == optional.of(1)", Why: "each copies its target twice, so ten make 3^10"},
		Case{Name: "opt-map-20", Text: "optional.of(1)" + chained(20, ".optMap(x, x)") + " == optional.of(1)", Why: "the same, twenty times"},
		Case{Name: "opt-map-400", Text: "optional.of(1)" + chained(400, ".optMap(x, x)") + " == optional.of(1)", Why: "the same, four hundred times"},
		Case{Name: "opt-flat-map", Text: "optional.of(1)" + chained(20, ".optFlatMap(x, optional.of(x))") + " == optional.of(1)", Why: "each copies its target"},
		Case{Name: "opt-map-inside", Text: nested(40, "optional.of(1).optMap(x, ", "x", ")") + ".hasValue()", Why: "one inside the other"},
		Case{Name: "opt-map-both", Text: nested(10, "optional.of(1).optMap(x, x).optMap(x, ", "x", ")") + ".hasValue()", Why: "chained and nested"},
		Case{Name: "opt-map-of-long", Text: "optional.of([" + joined(900, "1", ",") + "])" + chained(7, ".optMap(x, x)") + ".hasValue()", Why: "a long target is copied"},
		Case{Name: "sort-by", Where: Device, Text: "[1]" + chained(20, ".sortBy(x, x)") + " == [1]", Why: "a macro that needs its target twice"},
		Case{Name: "sort-by-inside", Where: Device, Text: nested(30, "size([1].sortBy(x, ", "x", "))") + " == 1", Why: "one inside the other"},
		Case{Name: "has", Text: joined(370, "has({'a': 1}.a)", "&&"), Why: "tests side by side"},
		Case{Name: "has-deep", Text: "has({'a': 1}" + times(2000, ".a") + ")", Why: "a chain of fields"},
		Case{Name: "map-filter", Text: "[1]" + chained(100, ".map(x, true, x)") + " == [1]", Why: "loops over loops"},
		Case{Name: "transform", Text: "[1]" + chained(200, ".transformList(i, v, v)") + " == [1]", Why: "loops over loops with two variables"},
		Case{Name: "transform-inside", Text: nested(60, "[1].transformList(i, v, ", "v", ")") + " == []", Why: "one inside the other"},
		Case{Name: "bind-wide", Text: numbered(190, " && ", func(i int) string { return fmt.Sprintf("cel.bind(v%d, %d, v%d >= 0)", i, i, i) }), Why: "names side by side"},
		Case{Name: "exists-one", Text: nested(60, "[1].existsOne(i, v, ", "true", ")"), Why: "loops in loops with two variables"},
	)
}

// types are what the checker computes with.
func types() []Case {
	pair := func(v string) string { return "{" + v + ": " + v + "}" }
	values := func(v string) string { return "{[" + v + "]: [" + v + "]}" }
	staircase := make([]string, 120)
	for i := range staircase {
		staircase[i] = nested(i+1, "[", "", "]")
	}
	return attack(Compilation, Anywhere,
		Case{Name: "type-of-maps", Text: doubled(60, "{1: 1}", pair, with("X == X")), Why: "the type of a map has two parts, so it has 2^60"},
		Case{Name: "type-of-maps-20", Text: doubled(20, "{1: 1}", pair, with("X == X")), Why: "the same, few enough to end"},
		Case{Name: "type-of-maps-unknown", Text: doubled(60, "{}", pair, with("X == X")), Why: "the same with unknown types inside"},
		Case{Name: "type-of-maps-error", Text: doubled(24, "{1: 1}", pair, with("X + 1 == 2")), Why: "the error has the type in it"},
		Case{Name: "type-of-maps-result", Text: doubled(24, "{1: 1}", pair, with("X")), Why: "the type of the result is in the error"},
		Case{Name: "type-of-maps-of-lists", Text: doubled(40, "{1: 1}", values, with("X != X")), Why: "lists between the maps"},
		Case{Name: "type-of-maps-dyn", Text: doubled(40, "dyn(1)", pair, with("type(X) == map")), Why: "the same at run time"},
		Case{Name: "type-staircase", Text: "[" + strings.Join(staircase[:90], ", ") + "] == []", Why: "lists of all depths have to be of one type"},
		Case{Name: "type-staircase-sum", Text: strings.Join(staircase[:90], " + ") + " == []", Why: "sums of lists of all depths"},
		Case{Name: "type-staircase-equal", Text: strings.Join(staircase[:80], " == [] || ") + " == []", Why: "comparisons with unknown types"},
		Case{Name: "type-of-empty", Text: doubled(100, "[]", func(v string) string { return "[" + v + ", []]" }, with("X == X")), Why: "unknown types that are found one by one"},
		Case{Name: "type-self", Text: "cel.bind(a, [], a + [a] == a + [[a]]) && cel.bind(m, {}, {m: m} == m)", Why: "a type that would have itself in it"},
		Case{Name: "type-conditional", Text: nested(100, "(true ? [] : [", "", "])") + " == []", Why: "both sides have to be of one type"},
		Case{Name: "type-deep-optional", Text: nested(300, "optional.of(", "1", ")") + " == optional.none()", Why: "types in types"},
		Case{Name: "type-overloads", Text: "dyn(1)" + times(1400, "+dyn(1)") + " == 1", Why: "all overloads stay possible"},
		Case{Name: "type-overloads-deep", Text: "dyn([1])" + times(300, ".map(x, x + dyn(1))") + " == []", Why: "the same in loops"},
		Case{Name: "type-just-conditional", Text: nested(60, "(true ? [] : [", "", "])") + " == []", Why: "the same as deep as the parser goes"},
		Case{Name: "type-just-optional", Text: nested(80, "optional.of(", "1", ")") + " == optional.none()", Why: "the same as deep as the parser goes"},
		Case{Name: "type-just-overloads", Text: "dyn(1)" + times(110, "+dyn(1)") + " == 1", Why: "the same as long as the checker takes it"},
		Case{Name: "type-just-overloads-deep", Text: "dyn([1])" + times(80, ".map(x, x + dyn(1))") + " == []", Why: "the same as long as the checker takes it"},
		Case{Name: "type-overloads-in", Text: "[dyn(1)]" + times(750, " in [dyn([])]"), Why: "comparisons of anything"},
	)
}

// panics are for what CEL does not expect.
func panics() []Case {
	return attack(Panic, Anywhere,
		Case{Name: "panic-optional-dyn", Text: "[?dyn(1)] == []", Why: "a validator takes the element for an optional one"},
		Case{Name: "panic-optional-map", Text: "{?'a': dyn(1)} == {}", Why: "the same in a map"},
		Case{Name: "panic-division", Text: "(-9223372036854775807 - 1) / -1 > 0 || (-9223372036854775807 - 1) % -1 == 0", Why: "the one division that overflows"},
		Case{Name: "panic-negate", Text: "-(-9223372036854775807 - 1) > 0", Why: "the one number without a negative"},
		Case{Name: "panic-index", Text: "[1][-9223372036854775807 - 1] == 1 || [1][9223372036854775807] == 1 || [1][1.5] == 1", Why: "indices out of range"},
		Case{Name: "panic-index-dyn", Text: "[1][dyn(1e300)] == 1 || [1][dyn(18446744073709551615u)] == 1", Why: "indices that are no ints"},
		Case{Name: "panic-substring", Text: "'abc'.substring(-9223372036854775807) == '' || 'abc'.substring(2, 1) == '' || 'abc'.charAt(9223372036854775807) == ''", Why: "places out of range"},
		Case{Name: "panic-slice", Where: Device, Text: "[1, 2].slice(-1, 9223372036854775807) == [] || [1, 2].slice(2, 1) == []", Why: "places out of range"},
		Case{Name: "panic-range", Where: Device, Text: "lists.range(-1).size() == 0 || lists.range(-9223372036854775807).size() == 0", Why: "a length below zero"},
		Case{Name: "panic-flatten", Where: Device, Text: "[[1]].flatten(-1) == [] || [dyn([1])].flatten(9223372036854775807) == []", Why: "depths out of range"},
		Case{Name: "panic-index-of", Text: "'abc'.indexOf('b', 9223372036854775807) == 0 || 'abc'.lastIndexOf('', -9223372036854775807) == 0", Why: "places out of range"},
		Case{Name: "panic-convert", Text: "int(1e300) == 1 || uint(-1.0) == 1u || int(0.0 / 0.0) == 1 || timestamp(9223372036854775807) > timestamp(0)", Why: "numbers out of range"},
		Case{Name: "panic-empty", Text: "[].max() == 1 || [].min() == 1", Why: "no element"},
		Case{Name: "panic-first", Where: Device, Text: "[].first().value() == 1 || optional.none().value() == 1", Why: "no value"},
		Case{Name: "panic-unhashable", Text: "{[1]: 1} == {[1]: 1} || {{}: 1}[{}] == 1 || {1.5: 1}[1.5] == 1", Why: "keys that are none"},
		Case{Name: "panic-keys-twice", Text: "{1: 1, 1u: 2, 1.0: 3}.size() == 1", Why: "keys that are equal"},
		Case{Name: "panic-sort-mixed", Text: "dyn([1, dyn('a'), dyn([])]).isSorted() || dyn([dyn(1), dyn('a')]).max() == 1", Why: "elements that can't be compared"},
		Case{Name: "panic-sort-by-mixed", Where: Device, Text: "[1, 2].sortBy(x, x == 1 ? dyn(1) : dyn('a')) == [] || dyn(1).sortBy(x, x) == []", Why: "keys that can't be compared"},
		Case{Name: "panic-macro-on-none", Text: "dyn(1).all(x, true) || dyn('a').map(x, x) == [] || dyn(null).exists(x, true)", Why: "loops over what is no list"},
		Case{Name: "panic-two-variables", Text: "dyn(1).all(i, x, true) || dyn('a').transformMap(i, x, x) == {} || [1].transformMapEntry(i, v, {}) == {}", Why: "loops over what is no list"},
		Case{Name: "panic-format-types", Text: "'%d%x%b%o%e%f%c'.format([null, [], {}, 1.5, 'a', b'', type]) == ''", Why: "values that don't fit"},
		Case{Name: "panic-utf8", Text: "string(b'\\xff\\xfe') == '' || bytes('\\ud800') == b''", Why: "what is no text"},
		Case{Name: "panic-null", Text: "null == dyn(1) || dyn(null).a == 1 || dyn(null)[0] == 1 || size(dyn(null)) == 1", Why: "no value at all"},
		Case{Name: "panic-types", Text: "type(type(1)) == type && dyn(int)(1) == 1", Why: "types are values"},
		Case{Name: "panic-wrappers", Text: "google.protobuf.Int64Value{value: 1} == 1 || google.protobuf.Any{} == null || google.protobuf.Struct{fields: {'a': google.protobuf.Value{}}} == {}", Why: "messages of protobuf"},
		Case{Name: "panic-any", Text: "google.protobuf.Any{type_url: 'a', value: b'\\xff'} == google.protobuf.Any{type_url: 'type.googleapis.com/google.protobuf.Any', value: b'\\x0a'}", Why: "a message that can't be read"},
		Case{Name: "panic-duration", Text: "duration('-9223372036.854775808s') - duration('9223372036.854775807s') > duration('0s') || -duration('1s') < duration('0s')", Why: "beyond what there is"},
		Case{Name: "panic-hidden-names", Text: "__result__ == 1 || @result == 1 || [1].all(__result__, true) || [1].all(@c, true)", Why: "names that macros use"},
		Case{Name: "panic-shadow", Text: "[1].all(devices, [2].all(device, [3].all(managedCluster, managedCluster + device + devices == 6)))", Why: "a variable that hides the input"},
		Case{Name: "panic-has", Text: "has(dyn(1).a) || has(dyn(null).a) || has([].a) || has({}.a.b.c)", Why: "fields of what has none"},
		Case{Name: "panic-zero", Text: "\x00", Why: "a byte that is no letter"},
		Case{Name: "panic-reserved", Text: "if == 1 || while == 2 || .a.b == 3 || `a` == 4 || {'a': 1}.`a` == 1", Why: "words and quotes that are reserved"},
	)
}
