// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import "fmt"

// texts grow, or are gone through by calls that cost more than they say.
func texts() []Case {
	a := times(4000, "a")
	grown := "'aaaaaaaaaa'"
	for range 9 {
		grown += ".replace('a', 'aaaaaaaaaa')"
	}
	both := Device | Cluster
	return attack(Time, both,
		Case{Name: "replace-of-nothing", Attack: Memory, Text: fmt.Sprintf("cel.bind(a, '%s', a.replace('', a).replace('', a).size() > 0)", a), Why: "nothing is everywhere, so a text is put between all letters, twice"},
		Case{Name: "replace-nested", Attack: Memory, Text: fmt.Sprintf("cel.bind(a, '%s', a.replace('', a.replace('', a)).size() > 0)", a), Why: "the same, inside out"},
		Case{Name: "replace-of-replaced", Attack: Memory, Text: fmt.Sprintf("cel.bind(a, '%s', cel.bind(b, a.replace('', a), b.replace('', b).size() > 0))", times(700, "a")), Why: "a text just under the limit, put between all its letters"},
		Case{Name: "replace-literal", Attack: Memory, Text: fmt.Sprintf("'%[1]s'.replace('', '%[1]s').replace('', '%[1]s'.replace('', '%[1]s')).size() > 0", times(990, "a")), Why: "constants only"},
		Case{Name: "replace-once", Attack: Memory, Text: fmt.Sprintf("cel.bind(a, '%s', a.replace('', a + a + a + a).size() > 0)", a), Why: "64 MB in one call"},
		Case{Name: "replace-grows", Attack: Memory, Text: grown + ".size() > 0", Why: "ten times the letters with each of nine calls"},
		Case{Name: "replace-limit", Text: "'a'.replace('', 'a', 9223372036854775807).replace('', 'a', -9223372036854775807) == 'aaa'", Why: "limits out of range"},
		Case{Name: "replace-in-loops", Text: textOf(10, nestedLoops(4, "X.replace('a', 'bb').size() > 0")), Why: "a copy of 10,000 letters ten thousand times"},
		Case{Name: "double-text", Attack: Memory, Text: textOf(40, "X.size() > 0"), Why: "each concatenation is a copy"},
		Case{Name: "double-text-20", Attack: Memory, Text: textOf(20, "[1,2,3,4,5,6,7,8,9,10].map(i, X + 'b').size() > 0"), Why: "texts just under the limit, kept in a list"},
		Case{Name: "char-at", Text: doubled(14, "'aaaaaaaaaa'", sum, with("[1,2,3,4,5,6,7,8,9,10].all(i, [1,2,3,4,5,6,7,8,9,10].all(j, [1,2,3,4,5,6,7,8,9,10].all(k, [1,2,3,4,5,6,7,8,9,10].all(l, X.charAt(i * j) == 'a'))))")), Why: "for one letter all are converted, and one step is charged"},
		Case{Name: "substring", Text: doubled(14, "'aaaaaaaaaa'", sum, with("[1,2,3,4,5,6,7,8,9,10].all(i, [1,2,3,4,5,6,7,8,9,10].all(j, [1,2,3,4,5,6,7,8,9,10].all(k, X.substring(i) != 'b')))")), Why: "the same"},
		Case{Name: "size-of-text", Text: doubled(16, "'aaaaaaaaaa'", sum, with("[1,2,3,4,5,6,7,8,9,10].all(i, [1,2,3,4,5,6,7,8,9,10].all(j, [1,2,3,4,5,6,7,8,9,10].all(k, X.size() > 0)))")), Why: "letters are counted each time"},
		Case{Name: "index-of", Text: doubled(16, "'aaaaaaaaaa'", sum, with("(X).indexOf(X + 'b') < 0 && (X).lastIndexOf('b' + X) < 0 && X.indexOf(X.substring(300000) + 'b') < 0")), Why: "all places are tried, with a long text to compare at each"},
		Case{Name: "last-index-of", Text: doubled(14, "'aaaaaaaaaa'", sum, with("X.lastIndexOf(X.substring(80000).replace('a', 'b', 1)) < 0")), Why: "quadratic in one call"},
		Case{Name: "contains", Text: doubled(16, "'aaaaaaaaaa'", sum, with("!X.contains(X.substring(300000) + 'b')")), Why: "a search that can't succeed"},
		Case{Name: "split-each", Attack: Memory, Text: textOf(17, "X.split('').size() > 0"), Why: "sixteen bytes for each letter, and more"},
		Case{Name: "split-exists", Text: fmt.Sprintf("cel.bind(l, '%s'.split(','), l.exists(x, l.exists(y, l.exists(z, x + y + z == 'b'))))", joined(900, "a", ",")), Why: "lists of computed size are taken to be small"},
		Case{Name: "split-exists-twice", Text: fmt.Sprintf("'%[1]s'.split(',').exists(x, '%[1]s'.split(',').exists(y, x != y))", joined(2400, "a", ",")), Why: "inside every limit"},
		Case{Name: "split-limit", Text: "'a,b'.split(',', -9223372036854775807).size() == 2 || 'a'.split('', 9223372036854775807).size() == 1", Why: "limits out of range"},
		Case{Name: "split-join", Attack: Memory, Text: fmt.Sprintf("cel.bind(s, '%s', s.split(',').join(s).split('').join(s).size() > 0)", joined(2000, "a", ",")), Why: "a long separator between all parts"},
		Case{Name: "join-long-separator", Attack: Memory, Text: fmt.Sprintf("cel.bind(a, '%s', a.split('').join(a).size() > 0)", a), Why: "16 MB from one call"},
		Case{Name: "lower-in-loops", Text: textOf(16, nestedLoops(3, "X.lowerAscii().upperAscii().trim() != ''")), Why: "three copies a thousand times"},
		Case{Name: "quote-grows", Where: Device | Cluster, Attack: Memory, Text: "strings.quote(" + nested(24, "strings.quote(", "'\\\\'", ")") + ").size() > 0", Why: "each quotation doubles the backslashes"},
		Case{Name: "text-compared", Text: textOf(18, nestedLoops(2, "X < X + 'b'")), Why: "a copy and a comparison of megabytes"},
		Case{Name: "text-in-list", Text: textOf(15, nestedLoops(3, "!(X + 'b' in [X + 'c', X + 'd', X + 'e'])")), Why: "comparisons inside a call"},
		Case{Name: "text-starts", Text: textOf(18, nestedLoops(3, "X.startsWith(X) && X.endsWith(X)")), Why: "long texts that are the same"},
		Case{Name: "text-of-bytes", Text: textOf(18, nestedLoops(2, "string(bytes(X)) == X")), Why: "two copies, and a check of each letter"},
		Case{Name: "reverse-text", Where: Cluster, Text: textOf(18, nestedLoops(2, "X.reverse() != 'b'")), Why: "letters are converted one by one"},
	)
}

// patterns are regular expressions: long, large when compiled, made at run time, on long
// texts.
func patterns() []Case {
	computed := func(pattern string) string {
		return nestedLoops(3, fmt.Sprintf("!'b'.matches(%s + string(x1) + string(x2) + string(x0))", pattern))
	}
	both := Device | Cluster
	return attack(Time, both,
		Case{Name: "regex-classes", Text: computed(`'(?i)\\pL{900}'`), Why: "a pattern of a few bytes is a program of megabytes, and a new one each time"},
		Case{Name: "regex-one-class", Attack: Compilation, Where: Anywhere, Text: `'a'.matches('(?i)(\\pL{30}\\pN{30}[^\\pZ]{30}){10}')`, Why: "compiled when it is checked, and when it is planned"},
		Case{Name: "regex-counted", Attack: Compilation, Where: Anywhere, Text: `'a'.matches('(a{1000}){1000}')`, Why: "a million copies, if nobody refuses it"},
		Case{Name: "regex-counted-deep", Attack: Compilation, Where: Anywhere, Text: `'a'.matches('((((a{10}){10}){10}){10}){10}')`, Why: "the same, written another way"},
		Case{Name: "regex-counted-concatenated", Attack: Compilation, Where: Anywhere, Text: fmt.Sprintf(`'a'.matches('%s')`, times(1500, "a{900}")), Why: "many small repetitions"},
		Case{Name: "regex-alternatives", Text: fmt.Sprintf(`cel.bind(p, '%s', [1,2,3,4,5,6,7,8,9,10].all(i, [1,2,3,4,5,6,7,8,9,10].all(j, !'b'.matches(p + string(i * j)))))`, numbered(1500, "|", func(i int) string { return fmt.Sprintf("a%d", i) })), Why: "a long alternation, compiled anew each time"},
		Case{Name: "regex-on-long-text", Text: textOf(14, `!X.matches('(a|aa|aaa|aaaa)*(a?){200}b$')`), Why: "each letter keeps all states busy"},
		Case{Name: "regex-stars", Text: textOf(12, `!X.matches('.*.*.*.*.*.*.*.*.*.*=.*.*.*.*.*.*$')`), Why: "a classic"},
		Case{Name: "regex-optional", Text: textOf(8, `X.matches('^(a?){500}a{500}')`), Why: "another classic"},
		Case{Name: "regex-find-all", Attack: Memory, Text: textOf(16, `X.findAll('').size() > 0`), Why: "nothing is found everywhere"},
		Case{Name: "regex-find-each", Attack: Memory, Text: textOf(16, `X.findAll('a').size() > 0`), Why: "a list of all letters"},
		Case{Name: "regex-find-in-loops", Text: textOf(12, nestedLoops(3, `X.find('a*b') == ''`)), Why: "the text is gone through from each of its letters"},
		Case{Name: "regex-find-quadratic", Text: textOf(13, `X.findAll('a*b').size() == 0`), Why: "quadratic in one call"},
		Case{Name: "regex-deep", Attack: Compilation, Where: Anywhere, Text: fmt.Sprintf(`'a'.matches('%s')`, nested(950, "(", "a", ")*")), Why: "the parser of patterns is recursive"},
		Case{Name: "regex-deeper", Attack: Compilation, Text: fmt.Sprintf(`'a'.matches('%s')`, nested(4000, "(", "a", ")")), Why: "deeper than it accepts"},
		Case{Name: "regex-groups", Attack: Memory, Text: fmt.Sprintf(`'1Gi1Gi'.findAll('%s/a/a').size() > 0`, times(1600, "(a|b)*")), Why: "each of 8,000 instructions keeps where 1,600 groups are: hundreds of megabytes for six letters"},
		Case{Name: "regex-groups-computed", Attack: Memory, Text: fmt.Sprintf(`cel.bind(p, '%s', [1, 2, 3].all(i, '1Gi1Gi'.findAll(p + '/a/a' + string(i)).size() == 0))`, times(1600, "(a|b)*")), Why: "the same, in a pattern that is not known before"},
		Case{Name: "regex-names", Attack: Compilation, Text: fmt.Sprintf(`'a'.matches('%s')`, numbered(450, "", func(i int) string { return fmt.Sprintf("(?P<n%d>a)?", i) })), Why: "groups with names"},
		Case{Name: "regex-of-regex", Attack: Memory, Text: textOf(15, `X.matches(X)`), Why: "the pattern is as long as the text"},
		Case{Name: "regex-invalid-long", Attack: Memory, Text: textOf(18, `'a'.matches('(' + X)`), Why: "the error has the pattern in it"},
		Case{Name: "regex-alike", Attack: Compilation, Text: fmt.Sprintf(`'a'.matches('%s')`, times(2, times(4500, ".")+"b|")), Why: "alternatives that begin alike are taken apart, piece by piece: quadratic"},
		Case{Name: "regex-alike-computed", Text: fmt.Sprintf(`cel.bind(p, '%s', [1,2,3,4,5,6,7,8,9,10].all(i, [1,2,3,4,5,6,7,8,9,10].all(j, !'b'.matches(p + p + string(i * j)))))`, times(2000, ".a")+"b|"), Why: "the same, doubled, and anew each time"},
		Case{Name: "regex-fold-range", Attack: Compilation, Text: fmt.Sprintf(`'a'.matches('(?i)%s')`, times(900, "[B-𞥂]")), Why: "without regard to case each of 125,000 letters is looked up: ten seconds"},
		Case{Name: "regex-fold-range-many", Attack: Compilation, Text: numbered(200, "||", func(i int) string { return fmt.Sprintf(`'a'.matches('(?i)[B-𞥂]{%d}')`, i+1) }), Why: "the same in many small ones"},
		Case{Name: "regex-fold-range-computed", Text: `cel.bind(p, '(?i)[B-\\x{1e900}]', [1,2,3,4,5,6,7,8,9,10].all(i, [1,2,3,4,5,6,7,8,9,10].all(j, [1,2,3,4,5,6,7,8,9,10].all(k, !'b'.matches(p + string(i * j * k))))))`, Why: "the same, anew each time"},
		Case{Name: "regex-many", Attack: Compilation, Text: numbered(250, "||", func(i int) string { return fmt.Sprintf(`'a'.matches('(b{1000}){15}%d')`, i) }), Why: "each just below the limit"},
		Case{Name: "regex-fold", Text: textOf(13, `!X.matches('(?i)[^\\pL]|K{100}|(?:a|A|ſ){300}b')`), Why: "letters that are the same without case"},
	)
}
