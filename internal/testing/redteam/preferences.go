// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import "fmt"

// preferences keep the search busy with looking for what is better: some set will do, and there
// always may be one that is worth more.
func preferences() []Case {
	const index = "attributes['mla.example.com'].index"
	hash := fmt.Sprintf("devices.map(d, d.%[1]s * (d.%[1]s + 7)).sum() %% 1000003", index)
	threefold := fmt.Sprintf("devices.map(a, devices.map(b, devices.map(c, a.%[1]s * b.%[1]s * c.%[1]s).sum()).sum()).sum() %% 1000003", index)
	return attack(Time, Preference,
		Case{Name: "preference-hash", Devices: 16, Text: hash, Why: "nobody can read it, so each set is looked at, and none is known to be the best"},
		Case{Name: "preference-hash-4", Devices: 16, Constraints: 4, Text: hash, Why: "as many as a claim may have"},
		Case{Name: "preference-expensive", Devices: 16, Text: threefold, Why: "each evaluation is a little less than the limit for one"},
		Case{Name: "preference-expensive-4", Devices: 12, Constraints: 4, Text: threefold, Why: "four of them"},
		Case{Name: "preference-all-devices", Devices: 32, Text: hash, Why: "as many as a claim can have"},
		Case{Name: "preference-equal", Devices: 16, Text: "devices.map(d, 1).sum()", Why: "all sets are worth the same, and the bound says so late"},
		Case{Name: "preference-loose", Devices: 14, Text: fmt.Sprintf("devices.map(d, (d.%[1]s * 7 + 3) %% 11).sum() - devices.map(d, (d.%[1]s * 5 + 2) %% 11).sum() * 2 + devices.map(d, d.%[1]s * d.%[1]s %% 13).max()", index), Why: "the sum of bounds promises what no set has"},
		Case{Name: "preference-order", Devices: 12, Text: fmt.Sprintf("devices[0].%[1]s * devices[1].%[1]s - devices[2].%[1]s * devices[3].%[1]s", index), Why: "places in the set"},
		Case{Name: "preference-ring", Devices: 15, Text: fmt.Sprintf("devices.ring(a, b, (a.%[1]s * b.%[1]s + 3) %% 7 < 3) ? 1 : 0", index), Why: "a ring is looked for in each set"},
		Case{Name: "preference-pairs", Devices: 12, Text: fmt.Sprintf("devices.map(a, devices.filter(b, (a.%[1]s * b.%[1]s + 3) %% 7 == 5).size()).sum()", index), Why: "a densest part of a graph without structure"},
		Case{Name: "preference-text", Devices: 10, Text: fmt.Sprintf("devices.map(d, string(d.%s)).join(',').matches('^(1|3|5|7|9,)*x$') ? 1 : 0", index), Why: "a text is made of each set"},
		Case{Name: "preference-branches", Devices: 12, Text: hash + " > 500000 ? " + hash + " : -(" + hash + ")", Why: "both branches, on each set"},
		Case{Name: "preference-overflow", Attack: Panic, Devices: 4, Text: "devices.map(d, 9223372036854775807).sum()", Why: "a sum beyond integers, also of its bound"},
		Case{Name: "preference-least", Attack: Panic, Devices: 4, Text: "-devices.map(d, -9223372036854775807 - 1).min()", Why: "the least integer has no opposite"},
		Case{Name: "preference-divided", Attack: Panic, Devices: 4, Text: fmt.Sprintf("9223372036854775807 / (devices.map(d, d.%[1]s).min() - devices.map(d, d.%[1]s).min()) + (-9223372036854775807 - 1) / -1", index), Why: "divided by nothing"},
		Case{Name: "preference-empty", Attack: Panic, Devices: 4, Text: "devices.filter(d, false).map(d, 1).max()", Why: "the greatest of none"},
		Case{Name: "preference-dyn", Attack: Panic, Devices: 2, Text: "dyn(devices)", Why: "no int, which only the evaluation shows"},
		Case{Name: "preference-memory", Attack: Memory, Devices: 16, Text: doubled(17, "devices.map(d, 1)", sum, with("X.size()")), Why: "a list of two million for each set"},
		Case{Name: "preference-compile", Attack: Compilation, Text: "devices" + times(90, ".filter(d, devices.ring(a, b, a == d))") + ".size()", Why: "each macro is expanded into two loops"},
	)
}

// asValue makes a condition a value. A set for which it holds is worth more.
func asValue(c Case) Case {
	c.Text = "(" + c.Text + ") ? 1 : 0"
	c.Constraints = min(c.Constraints, mostPreferences)
	return c
}

// mostPreferences is how many a claim may have.
const mostPreferences = 4

// AsPreferences are the cases for preferences, and those for constraints in the place of a
// preference.
func AsPreferences() []Case {
	cases := On(Preference)
	for _, c := range On(Device | Search) {
		cases = append(cases, asValue(c))
	}
	return cases
}
