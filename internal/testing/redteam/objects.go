// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import (
	"fmt"
	"strings"
)

// movingLists are lists of lists of times in as many loops.
func movingLists(n int) string {
	var text strings.Builder
	text.WriteString("[now()]")
	for i := range n {
		fmt.Fprintf(&text, ".map(x%[1]d, [x%[1]d]", i)
	}
	return text.String() + times(n, ")") + ".size() == 1"
}

// clusters read a managed cluster, or use what only expressions over clusters have.
func clusters() []Case {
	long := Reported{Annotations: map[string]string{"text": times(60000, "a"), "list": joined(20000, "a", ","), "json": "[" + joined(15000, "[1]", ",") + "]"}}
	text := func(name string) string {
		return "managedCluster.metadata.annotations." + name
	}
	return attack(Time, Cluster,
		Case{Name: "cluster-text-repeat", Attack: Memory, Reported: long, Text: fmt.Sprintf("cel.bind(a, %s, a.replace('a', a.substring(0, 100)).size() > 0)", text("text")), Why: "6 MB from an annotation of 60 KB"},
		Case{Name: "cluster-text-nothing", Attack: Memory, Reported: long, Text: fmt.Sprintf("cel.bind(a, %s, a.replace('', a).size() > 0)", text("text")), Why: "3.6 GB from an annotation of 60 KB"},
		Case{Name: "cluster-text-regex", Reported: long, Text: fmt.Sprintf("cel.bind(a, %s, a.matches('(a?){200}(a|aa|aaa)*b$'))", text("text")), Why: "60 KB times a pattern"},
		Case{Name: "cluster-text-regex-100", Reported: long, Text: fmt.Sprintf("cel.bind(a, %s, %s)", text("text"), numbered(100, "||", func(i int) string { return fmt.Sprintf("a.matches('((a{1,%d}){20})*b$')", i+1) })), Why: "the same a hundred times"},
		Case{Name: "cluster-text-split", Reported: long, Text: fmt.Sprintf("cel.bind(l, %s.split(','), l.exists(x, l.exists(y, x + y == 'b')))", text("list")), Why: "an annotation of 20,000 parts"},
		Case{Name: "cluster-text-split-in", Reported: long, Text: fmt.Sprintf("cel.bind(l, %s.split(','), l.all(x, x + 'b' in l) || sets.contains(l, l))", text("list")), Why: "each part looked for among all"},
		Case{Name: "cluster-text-json", Attack: Memory, Reported: long, Text: fmt.Sprintf("parseJSON(%[1]s) == parseJSON(%[1]s)", text("json")), Why: "a text becomes 15,000 lists"},
		Case{Name: "cluster-text-json-loops", Reported: long, Text: fmt.Sprintf("[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, parseJSON(%s).size() > 0)))", text("json")), Why: "the same a thousand times"},
		Case{Name: "cluster-text-nested-repeat", Reported: long, Text: fmt.Sprintf("cel.bind(a, %s, [1,2,3,4,5,6,7,8,9,10].all(i, [1,2,3,4,5,6,7,8,9,10].all(j, !a.matches('(a{1,20}){1,20}b'))))", text("text")), Why: "nested repetitions over 60 KB"},
		Case{Name: "json-deep", Attack: Memory, Text: "parseJSON('" + nested(30000, "[", "", "]") + "') == []", Why: "readers of JSON are recursive"},
		Case{Name: "json-deep-computed", Attack: Panic, Text: doubled(17, "'[[[[[[[[[['", sum, with("parseJSON(X) == 1")), Why: "a million levels"},
		Case{Name: "json-wide", Attack: Memory, Text: doubled(17, "'1,1,1,1,1,'", sum, with("parseJSON('[' + X + '1]').size() > 0")), Why: "655,360 numbers"},
		Case{Name: "json-wide-objects", Attack: Memory, Text: doubled(16, "'{},{},{},'", sum, with("parseJSON('[' + X + '1]').size() > 0")), Why: "200,000 maps"},
		Case{Name: "json-keys", Text: doubled(15, `'"a":1,"b":2,'`, sum, with(`parseJSON('{' + X + '"a":1}').size() > 0`)), Why: "keys that are repeated"},
		Case{Name: "json-numbers", Text: doubled(16, "'9999999999'", sum, with("parseJSON(X) > 1 || parseJSON('1e' + X) > 1")), Why: "numbers of 655,360 digits"},
		Case{Name: "json-error", Attack: Memory, Text: textOf(18, "parseJSON(X) == 1"), Why: "the error has the text in it"},
		Case{Name: "json-escapes", Attack: Memory, Text: doubled(16, `'\\u0041'`, sum, with(`parseJSON('"' + X + '"').size() > 0`)), Why: "six letters are one"},
		Case{Name: "shift", Attack: Panic, Text: "math.bitShiftLeft(1, 9223372036854775807) == 0 || math.bitShiftRight(1u, -1) == 0u || math.abs(-9223372036854775807 - 1) > 0", Why: "shifts out of range"},
		Case{Name: "rounding", Attack: Panic, Text: "math.round(1e308 * 10.0) > 0.0 || math.isNaN(math.sqrt(-1.0)) || math.greatest([]) == 1 || math.least(1, dyn('a')) == 1", Why: "numbers that are none"},
		Case{Name: "now-each-tick", Text: nestedLoops(4, "string(now()) != string(x0)"), Why: "it has to be evaluated on each cluster every ten seconds"},
		Case{Name: "now-in-loops", Text: nestedLoops(5, "now() - timestamp(x0) > duration(string(x1) + 's')"), Why: "each of a hundred thousand comparisons says when it changes"},
		Case{Name: "now-in-zones", Text: nestedLoops(5, "now().getFullYear('America/Argentina/ComodRivadavia') > x0"), Why: "and so does each year of a zone"},
		Case{Name: "now-in-many-ways", Attack: Compilation, Text: movingLists(30), Why: "how fast each list moves is found out in more than one round, for each round of the loop around it"},
		Case{Name: "now-sums", Attack: Compilation, Text: doubled(60, "(now() - timestamp(0))", sum, with("X > duration('1s')")), Why: "it moves 2^60 times as fast as time"},
		Case{Name: "now-range", Attack: Panic, Text: "now() - timestamp(-62135596800) > duration('2562047h') || timestamp('9999-12-31T23:59:59.999999999Z') + (now() - timestamp(0)) < now() || (now() - duration('-2562047h47m16.854775807s')).getFullYear('-99999999:59') > 0", Why: "beyond what there is, while it moves"},
		Case{Name: "scores-computed", Text: nestedLoops(3, "managedCluster.scores('a' + string(x0) + string(x1) + string(x2)).size() > 0 || true"), Why: "names that are computed stand for all"},
		Case{Name: "whole-cluster", Attack: Memory, Text: nestedLoops(3, "managedCluster == managedCluster && [managedCluster, managedCluster] == [managedCluster, managedCluster]"), Why: "an object is compared field by field"},
		Case{Name: "whole-cluster-format", Attack: Memory, Text: nestedLoops(3, "'%s'.format([managedCluster]).size() > 0"), Why: "an object as text, a thousand times"},
		Case{Name: "error-with-cluster", Attack: Memory, Text: "managedCluster[string(managedCluster.metadata.name) + 'a'] == 1 || {'a': managedCluster}['b'] == 1", Why: "errors that show what they were about"},
	)
}

// reports are written by managed clusters.
func reports() []Case {
	memory := func(quantity string) Reported {
		return Reported{Allocatable: map[string]string{"memory": quantity, "cpu": quantity}}
	}
	const read = "quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity('1Gi'))"
	return attack(Time, Report,
		Case{Name: "report-exponent", Reported: memory("1e16000000"), Text: read, Why: "an example of the documentation takes seconds on it"},
		Case{Name: "report-exponent-2000000000", Reported: memory("1e2000000000"), Text: read, Why: "and never ends on this"},
		Case{Name: "report-not-finite", Attack: Panic, Reported: memory("1e1000"), Text: read, Why: "as a float it is infinite, and a share of it is no number"},
		Case{Name: "report-just-not-finite", Attack: Panic, Reported: memory("1e309"), Text: read, Why: "the first power of ten beyond floats"},
		Case{Name: "report-small", Reported: memory("1e-16000000"), Text: read, Why: "rounded when it is read"},
		Case{Name: "report-negative", Attack: Panic, Reported: memory("-1e400"), Text: read, Why: "below zero"},
		Case{Name: "report-unread", Reported: memory("1e16000000"), Text: "", Why: "nobody reads it but prioritizers"},
		Case{Name: "report-digits", Reported: memory(times(5000, "9")), Text: read, Why: "a number of many digits"},
		Case{Name: "report-as-integer", Reported: memory("1e16000000"), Text: "quantity(managedCluster.status.allocatable.memory).asInteger() > 0", Why: "another way to read it"},
		Case{Name: "report-as-float", Reported: memory("1e16000000"), Text: "quantity(managedCluster.status.allocatable.memory).asApproximateFloat() > 0.0", Why: "another way to read it"},
		Case{Name: "report-sum", Reported: memory("1e16000000"), Text: "quantity(managedCluster.status.allocatable.memory).add(quantity(managedCluster.status.allocatable.cpu)).isGreaterThan(quantity('1'))", Why: "another way to read it"},
		Case{Name: "report-as-text", Attack: Memory, Reported: memory("1e16000000"), Text: "managedCluster.status.allocatable.memory.size() > 0", Why: "the text could have all digits"},
		Case{Name: "report-version-long", Attack: Memory, Reported: Reported{Annotations: map[string]string{"version": times(60000, "9") + ".0.0"}}, Text: "semver(managedCluster.metadata.annotations.version, true).isGreaterThan(semver('1.0.0'))", Why: "a version of 60,000 digits"},
		Case{Name: "report-claims", Reported: Reported{Claims: manyClaims(2000)}, Text: "managedCluster.status.clusterClaims.all(a, managedCluster.status.clusterClaims.exists(b, a.name == b.name))", Why: "2,000 claims, compared with each other"},
	)
}

func manyClaims(n int) map[string]string {
	result := make(map[string]string, n)
	for i := range n {
		result[fmt.Sprintf("claim-%04d", i)] = times(20, "v")
	}
	return result
}

// bodies are for the debug endpoint.
func bodies() []Case {
	const head = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {namespace: mallory, name: body}\n"
	aliases := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		aliases += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, joined(10, fmt.Sprintf("*a%d", i), ", "))
	}
	return attack(Memory, Body,
		Case{Name: "body-aliases", Text: head + aliases, Why: "aliases of aliases of aliases"},
		Case{Name: "body-deep", Attack: Panic, Text: head + "spec: " + nested(60000, "[", "", "]"), Why: "readers of YAML are recursive"},
		Case{Name: "body-deep-maps", Attack: Panic, Text: head + "spec: " + nested(20000, "{a: ", "1", "}"), Why: "readers of YAML are recursive"},
		Case{Name: "body-deep-json", Attack: Panic, Text: nested(65000, "[", "", "]"), Why: "readers of JSON are recursive"},
		Case{Name: "body-number", Attack: Time, Text: head + "spec: {numberOfClusters: 1e1000000000}", Why: "a number out of range"},
		Case{Name: "body-digits", Attack: Time, Text: head + "spec: {numberOfClusters: " + times(125000, "9") + "}", Why: "a number of 125,000 digits"},
		Case{Name: "body-percent", Attack: Panic, Text: head + "spec: {decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 99999999999999999999%}}}", Why: "a share out of range"},
		Case{Name: "body-predicates", Attack: Time, Text: head + "spec:\n  predicates:\n" + times(1700, "  - requiredClusterSelector: {labelSelector: {matchLabels: {a: b}}}\n"), Why: "1,700 predicates"},
		Case{Name: "body-expressions", Attack: Time, Text: head + "spec: {predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [" + numbered(3300, ",", func(i int) string { return fmt.Sprintf("'[%d].exists(x, x > 0) || true'", i) }) + "]}}}]}", Why: "3,300 expressions, each compiled"},
		Case{Name: "body-expressions-long", Attack: Compilation, Text: head + "spec: {predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [" + numbered(1, ",", func(i int) string { return "'" + fmt.Sprint(i) + joined(49900, "+1", "") + " > 0'" }) + "]}}}]}", Why: "one of the longest expressions"},
		Case{Name: "body-labels", Attack: Time, Text: head + "spec: {predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: a, operator: In, values: [" + numbered(15000, ",", func(i int) string { return fmt.Sprintf("v%d", i) }) + "]}]}}}]}", Why: "15,000 values"},
		Case{Name: "body-tolerations", Attack: Time, Text: head + "spec: {tolerations: [" + numbered(3300, ",", func(i int) string { return fmt.Sprintf("{key: k%d, operator: Exists}", i) }) + "]}", Why: "3,300 tolerations"},
		Case{Name: "body-empty-lines", Attack: Time, Text: head + times(125000, "\n"), Why: "nothing at all, as much as may be sent"},
		Case{Name: "body-too-long", Text: head + "# " + times(5000000, "a"), Why: "longer than what is read"},
	)
}

// searches are constraints of which each evaluation is cheap.
func searches() []Case {
	const index = "attributes['mla.example.com'].index"
	hash := fmt.Sprintf("devices.map(d, d.%[1]s * (d.%[1]s + 7)).sum() %% 1000003 == 1000002", index)
	return attack(Time, Search,
		Case{Name: "search-never", Devices: 16, Text: hash, Why: "what no set satisfies and nobody can read is tried on all of 4.885e14 sets"},
		Case{Name: "search-never-8", Devices: 8, Text: hash, Why: "4e9 sets"},
		Case{Name: "search-order", Devices: 12, Text: fmt.Sprintf("devices[0].%[1]s * devices[1].%[1]s + devices[2].%[1]s == devices[3].%[1]s * 1000 + 999", index), Why: "places in the set, which change with each"},
		Case{Name: "search-constraints", Devices: 16, Constraints: 15, Text: hash, Why: "fifteen constraints, all of them evaluated on each set"},
		Case{Name: "search-expensive", Devices: 16, Text: fmt.Sprintf("devices.map(a, devices.map(b, devices.map(c, a.%[1]s * b.%[1]s * c.%[1]s).sum()).sum()).sum() %% 1000003 == 1000002", index), Why: "each evaluation is a little less than the limit for one"},
		Case{Name: "search-expensive-constraints", Devices: 12, Constraints: 12, Text: fmt.Sprintf("devices.map(a, devices.map(b, devices.map(c, a.%[1]s * b.%[1]s * c.%[1]s).sum()).sum()).sum() %% 1000003 != 1000002 && devices[0].%[1]s < 0", index), Why: "twelve of them"},
		Case{Name: "search-pairs", Devices: 14, Text: fmt.Sprintf("devices.all(a, devices.all(b, a == b || (a.%[1]s * b.%[1]s + 3) %% 7 != 5)) && devices.map(d, d.%[1]s).sum() == 1", index), Why: "a clique in a graph without structure"},
		Case{Name: "search-text", Devices: 10, Text: fmt.Sprintf("devices.map(d, string(d.%s)).join(',').matches('^(1|3|5|7|9,)*x$')", index), Why: "a text is made of each set"},
		Case{Name: "search-all-devices", Devices: 32, Text: hash, Why: "as many as a claim can have"},
	)
}
