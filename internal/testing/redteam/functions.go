// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import "fmt"

// quantities have exponents.
func quantities() []Case {
	of := func(text string) string { return "quantity('" + text + "')" }
	added := of("1e300000")
	for i := range 20 {
		added = fmt.Sprintf("%s.add(%s)", added, of(fmt.Sprintf("%de-9", i+1)))
	}
	return attack(Time, Anywhere,
		Case{Name: "quantity-greater", Text: of("1e2000000000") + ".isGreaterThan(" + of("1") + ")", Why: "a number of two thousand million digits is computed to compare it"},
		Case{Name: "quantity-less", Text: of("1") + ".isLessThan(" + of("-1e16000000") + ")", Why: "sixteen million digits take seconds"},
		Case{Name: "quantity-compare", Text: of("1e16000000") + ".compareTo(" + of("1e16000001") + ") < 0", Why: "both are computed"},
		Case{Name: "quantity-equal", Text: of("1e16000000") + " == " + of("10e15999999"), Why: "equality is a comparison, too"},
		Case{Name: "quantity-in", Text: of("1e16000000") + " in [" + of("1") + ", " + of("2") + "]", Why: "equality inside a call"},
		Case{Name: "quantity-add", Text: of("1e16000000") + ".add(" + of("1") + ").sub(1).isInteger()", Why: "a sum has all the digits"},
		Case{Name: "quantity-add-chain", Text: added + ".isGreaterThan(" + of("1") + ")", Why: "many sums of long numbers"},
		Case{Name: "quantity-integer", Text: of("1e16000000") + ".isInteger() || " + of("1e16000000") + ".asInteger() > 0", Why: "it is rounded to find out"},
		Case{Name: "quantity-float", Text: of("1e16000000") + ".asApproximateFloat() > 0.0", Why: "it is written as a text and read again"},
		Case{Name: "quantity-sign", Text: "sign(" + of("-1e2000000000") + ") < 0", Why: "the sign needs no digits"},
		Case{Name: "quantity-small", Text: of("1e-2000000000") + ".isLessThan(" + of("1") + ")", Why: "rounding up to billionths divides by a power of ten"},
		Case{Name: "quantity-small-parse", Text: "isQuantity('1e-2000000000') && isQuantity('-1e-99999999')", Why: "it is rounded when it is read"},
		Case{Name: "quantity-max-exponent", Text: "isQuantity('1e2147483647') && " + of("1e2147483647") + ".compareTo(" + of("1e-2147483647") + ") > 0", Why: "the largest exponents"},
		Case{Name: "quantity-digits", Text: of(times(4000, "9")+"e1000000") + ".compareTo(" + of(times(4000, "9")) + ") > 0", Why: "digits and an exponent"},
		Case{Name: "quantity-computed", Text: doubled(16, "'9999999999'", sum, with("quantity(X).add(quantity(X)).compareTo(quantity(X + '.1')) > 0")), Why: "655,360 digits, computed"},
		Case{Name: "quantity-error", Attack: Memory, Text: textOf(16, "quantity(X + 'e') == quantity('1')"), Why: "the error could have the text in it"},
		Case{Name: "quantity-in-loops", Text: nestedLoops(4, "quantity('1e20000').add(quantity(string(x0))).isGreaterThan(quantity('1e20000'))"), Why: "each a little, ten thousand times"},
		Case{Name: "quantity-squared", Text: "[1,2,3,4,5,6,7,8,9,10].map(i, quantity('1e1600000')).all(a, [1,2,3,4,5,6,7,8,9,10].map(i, quantity('1e1600000')).all(b, a.compareTo(b) == 0))", Why: "a hundred comparisons of a hundred milliseconds"},
		Case{Name: "quantity-binary", Text: "isQuantity('" + times(4000, "1") + "Ei') && " + of(times(4000, "1")+"Ei") + ".asInteger() > 0", Why: "a suffix in place of an exponent"},
		Case{Name: "quantity-range", Where: Device, Text: "lists.range(50000).all(i, quantity('1e20000').isGreaterThan(quantity(string(i))))", Why: "each a little, fifty thousand times"},
	)
}

// libraries are functions that do more than their cost says.
func libraries() []Case {
	both := Device | Cluster
	return attack(Time, both,
		Case{Name: "time-zones", Where: Anywhere, Text: nestedLoops(5, "timestamp(x0).getHours('America/Argentina/ComodRivadavia') >= 0"), Why: "time zones are read from files, each time"},
		Case{Name: "time-zones-unknown", Text: nestedLoops(4, "timestamp(x0).getHours('A' + string(x1) + '/B' + string(x2)) >= 0 || true"), Why: "several places are looked at, and an error made, each time"},
		Case{Name: "time-zone-long", Text: textOf(16, "timestamp(0).getHours(X) > 0"), Why: "a name of a file of 655,360 letters"},
		Case{Name: "time-zone-offset", Attack: Panic, Text: "timestamp(0).getHours('-99999999999999999999:00') > 0 || timestamp(0).getDayOfYear('+:') > 0", Why: "offsets that are none"},
		Case{Name: "timestamp-range", Attack: Panic, Text: "timestamp('9999-12-31T23:59:59.999999999Z') + duration('2562047h') > timestamp(-62135596800) - duration('2562047h')", Why: "beyond what there is"},
		Case{Name: "duration-long", Text: fmt.Sprintf("duration('%s') > duration('1s')", times(2500, "1ns")), Why: "a duration of many parts"},
		Case{Name: "duration-computed", Text: doubled(15, "'1ns1us1ms1s'", sum, with("duration(X) > duration('1s')")), Why: "a duration of a hundred thousand parts"},
		Case{Name: "int-computed", Text: doubled(16, "'9999999999'", sum, with("int(X) > 0 || double(X) > 0.0 || uint(X) > 0u")), Why: "numbers of 655,360 digits"},
		Case{Name: "double-computed", Text: textOf(3, "true") + " && " + doubled(16, "'1234567890'", sum, with("double('0.' + X) > 0.0 || double(X + 'e-655360') > 0.0")), Why: "decimals that are rounded exactly"},
		Case{Name: "semver-long", Text: fmt.Sprintf("semver('1.0.0-%[1]s.1').isLessThan(semver('1.0.0-%[1]s.2'))", joined(2200, "a", ".")), Why: "versions of thousands of parts"},
		Case{Name: "semver-computed", Text: doubled(15, "'1.1.1.1.1.'", sum, with("semver('1.0.0-' + X + '1').compareTo(semver('1.0.0-' + X + '2')) < 0")), Why: "a version of 150,000 parts"},
		Case{Name: "semver-digits", Text: doubled(16, "'9999999999'", sum, with("!isSemver(X + '.0.0') || !isSemver('v' + X, true)")), Why: "numbers of 655,360 digits, normalized"},
		Case{Name: "semver-in-loops", Text: doubled(11, "'1.1.1.1.1.'", sum, with(nestedLoops(3, "isSemver('1.0.0-' + v11 + '1')"))), Why: "the same text read again and again"},
		Case{Name: "url-long", Text: textOf(17, "url('https://example.com/' + X + '?a=' + X).getQuery().size() > 0"), Why: "a megabyte of path, and one of query"},
		Case{Name: "url-query", Attack: Memory, Text: doubled(14, "'a=1&b=2&c&'", sum, with("url('https://example.com/?' + X).getQuery().size() > 0")), Why: "a query of many values"},
		Case{Name: "url-escaped", Attack: Memory, Text: doubled(16, "'%20%20%20 '", sum, with("isURL('https://example.com/' + X) && url('https://example.com/' + X).getEscapedPath() != ''")), Why: "escapes triple a text"},
		Case{Name: "url-in-loops", Text: doubled(12, "'/aaaaaaaaa'", sum, with(nestedLoops(3, "url('https://example.com' + v12).getHost() != ''"))), Why: "the same address read a thousand times"},
		Case{Name: "ip-long", Text: textOf(18, "isIP(X) || isCIDR(X + '/8') || ip.isCanonical(X)"), Why: "addresses of megabytes"},
		Case{Name: "cidr-in-loops", Text: nestedLoops(5, "cidr('10.0.0.0/8').containsIP(ip('10.1.2.3')) && cidr('::/0').containsCIDR('fe80::/10')"), Why: "addresses read a hundred thousand times"},
		Case{Name: "ip-zone", Attack: Panic, Text: "isIP('fe80::1%" + times(2000, "a") + "') || isIP('::ffff:1.2.3.4') || isCIDR('1.2.3.4/-1')", Why: "addresses that are none"},
		Case{Name: "json-patch", Text: textOf(18, "jsonpatch.escapeKey(X) != ''"), Why: "a library that other Kubernetes expressions have"},
		Case{Name: "sets-of-lists", Text: nestedLoops(2, "sets.contains([[1,2,3],[4,5,6],[7,8,9]], [[7,8,9],[x0]]) || sets.equivalent([[[x0]]], [[[x0]]])"), Why: "elements that are lists"},
	)
}

// formats print.
func formats() []Case {
	both := Device | Cluster
	return attack(Memory, both,
		Case{Name: "format-precision", Text: "'%.1000000000f'.format([1.5]).size() > 0", Why: "a thousand million digits"},
		Case{Name: "format-precision-e", Text: "'%.99999999e'.format([1.5]).size() > 0 || '%.100000000f'.format([1e308]).size() > 0", Why: "the same, with an exponent"},
		Case{Name: "format-precision-max", Attack: Panic, Text: "'%.9223372036854775807f'.format([1.5]).size() > 0", Why: "a precision that wraps"},
		Case{Name: "format-many", Text: textOf(14, "'"+times(400, "%s")+"'.format(["+joined(400, "X", ",")+"]).size() > 0"), Why: "one text four hundred times"},
		Case{Name: "format-nested", Text: "'%s'.format(['%s%s%s%s'.format([" + joined(4, "'"+times(2000, "a")+"'", ",") + "])]).size() > 0", Why: "formats in formats"},
		Case{Name: "format-grows", Text: doubled(12, "'aaaaaaaaaa'", func(v string) string { return "'%s%s%s%s%s%s%s%s'.format([" + joined(8, v, ",") + "])" }, with("X.size() > 0")), Why: "eight times the letters with each step"},
		Case{Name: "format-binary", Text: textOf(18, "'%x%x'.format([X, bytes(X)]).size() > 0"), Why: "each letter becomes two"},
		Case{Name: "format-map", Text: "'%s'.format([[1,2,3,4,5,6,7,8,9,10].map(i, {'a': {'b': {'c': [[[[i]]]]}}})]).size() > 0", Why: "values of values"},
		Case{Name: "format-computed", Attack: Time, Text: doubled(14, "'%%%%%%%%%%'", sum, with("X.format([]).size() > 0")), Why: "a long format"},
		Case{Name: "format-missing", Attack: Panic, Text: "'%s%d%f%'.format([]) == '' || '%'.format([1]) == '' || '%.f'.format([1.0]) == ''", Why: "formats that are none"},
		Case{Name: "format-validate", Attack: Time, Text: textOf(17, "format.named('dns1123Subdomain').value().validate(X).hasValue()"), Why: "a pattern over a megabyte"},
		Case{Name: "format-validate-all", Attack: Time, Text: textOf(15, "format.uri().validate(X).hasValue() && format.uuid().validate(X).hasValue() && format.datetime().validate(X).hasValue() && format.qualifiedName().validate(X + '/' + X).hasValue()"), Why: "each has a pattern and an error"},
		Case{Name: "format-validate-error", Text: textOf(18, "format.byte().validate(X + '!').value()[0].size() > 0 && format.date().validate(X).value()[0].size() > 0"), Why: "the error has the text in it"},
		Case{Name: "format-validate-in-loops", Attack: Time, Text: textOf(9, nestedLoops(3, "format.dns1123Label().validate(v9).hasValue()")), Why: "patterns a thousand times"},
	)
}

// loops are inside the limits, one by one.
func loops() []Case {
	both := Device | Cluster
	return attack(Time, both,
		Case{Name: "loops-five", Text: nestedLoops(5, "x0 * x1 * x2 * x3 * x4 > 0"), Why: "a hundred thousand steps, a little less than the limit"},
		Case{Name: "loops-nine", Text: nestedLoops(9, "x0 > 0"), Why: "a thousand million steps"},
		Case{Name: "loops-empty", Text: nestedLoops(9, "true"), Why: "steps that cost nothing"},
		Case{Name: "loops-map", Attack: Memory, Text: "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, [1,2,3,4,5,6,7,8,9,10]))))).size() > 0", Why: "a million lists of constants"},
		Case{Name: "loops-exists-one", Text: "[1,2,3,4,5,6,7,8,9,10].exists_one(a, [1,2,3,4,5,6,7,8,9,10].exists_one(b, [1,2,3,4,5,6,7,8,9,10].exists_one(c, [1,2,3,4,5,6,7,8,9,10].exists_one(d, [1,2,3,4,5,6,7,8,9,10].exists_one(e, false))))) == false", Why: "a macro that never stops early"},
		Case{Name: "loops-errors", Attack: Memory, Text: nestedLoops(4, "(1 / (x0 - x0) > 0 || false)") + " || true", Why: "an error for each step"},
		Case{Name: "loops-transform", Attack: Memory, Text: "[1,2,3,4,5,6,7,8,9,10].transformList(a, b, [1,2,3,4,5,6,7,8,9,10].transformMap(c, d, [1,2,3,4,5,6,7,8,9,10].transformList(e, f, [1,2,3,4,5,6,7,8,9,10].transformMap(g, h, h)))).size() > 0", Why: "maps of lists of maps"},
		Case{Name: "loops-conditional", Text: nestedLoops(5, "x0 > 5 ? (x1 > 5 ? x2 < 11 : x3 < 11) : (x1 > 5 ? x3 < 11 : x4 < 11)"), Why: "branches"},
		Case{Name: "loops-strings", Attack: Memory, Text: nestedLoops(4, "string(x0) + string(x1) + string(x2) + string(x3) != ''"), Why: "small texts, many of them"},
		Case{Name: "loops-appended", Attack: Memory, Text: "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, string(a) + string(b) + string(c) + string(d))))).map(x, x.map(y, y.map(z, z.join('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')).join()).join()).join().size() > 0", Why: "texts joined level by level"},
		Case{Name: "loops-seven-devices", Where: Device, Devices: 16, Text: "devices.all(a, devices.all(b, devices.all(c, devices.all(d, devices.all(e, a == b || c == d || d == e || true)))))", Why: "a million sets of five"},
		Case{Name: "loops-attributes", Where: Device, Devices: 32, Text: "devices.all(a, devices.all(b, devices.all(c, a.attributes.all(k, v, b.attributes.all(l, w, true)))))", Why: "maps of attributes are gone through"},
	)
}
