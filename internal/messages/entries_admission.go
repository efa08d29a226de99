// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

func warnings() Group {
	return Group{
		Title: "Warnings when an object is created",
		Introduction: "kubectl shows them. The object is stored. What was wrong before, in an object that is only labelled now or the " +
			"like, is a warning as well and no error.",
		Entries: []Entry{
			{
				ID: "unreferenced", Texts: []string{
					"%s: no constraint refers to %q, so it does nothing; add matchAttribute: %s/%s to %s",
					"%s: no constraint refers to %q, and its expression does not compile: %s",
				},
				Cause: "The definition is there and no entry in `constraints` has its name. The claim gets any devices.",
				Cure:  "Add the reference, or remove the definition.",
			},
			{
				ID: "class-not-there", Texts: []string{"%s: pods that use the claim will wait until it is there"},
				Cause: "The definition is looked for in a DeviceClass that does not exist yet.",
				Cure:  "Create the class, or correct its name.",
			},
			{
				ID: "wrong-scheduler", Texts: []string{
					"spec.schedulerName: the scheduler %q does not know the CEL device constraint of %s %s, the pod would wait for ever; use %s",
				},
				Cause: "The pod uses a claim with a constraint and names a scheduler that does not know it.",
				Cure:  "Set `schedulerName` as it says.",
			},
			{
				ID: "order-dependent", Texts: []string{
					"%s: %s, line %d, column %d: the verdict may depend on the order of the devices; a set is evaluated in one order only, that of the requests and the pools",
				},
				Cause: "The expression uses the place of a device, such as `devices[0]`.",
				Cure:  "Say it with `all`, `exists` and `exists_one`: [the traps](constraints.md#the-traps).",
			},
			{
				ID: "worst-case", Texts: []string{
					"%s: %s: one evaluation on %d devices may cost %s CEL cost units, the limit is %d; ask for fewer devices or write a cheaper expression",
				},
				Cause: "By estimate, with as large devices as the API allows, an evaluation crosses the cost limit. Real devices are usually smaller.",
				Cure:  "Nest fewer loops, or try it: `kubectl celset simulate`.",
			},
			{
				ID: "unreadable", Texts: []string{
					"%s: %s: the search can't read the expression, and may have %s sets of %d devices to try on a node; narrow the candidates with selectors, or write it as docs/constraints.md says",
				},
				Cause: "Nothing of the expression tells the search which sets to leave out.",
				Cure:  "See [what makes it fast](constraints.md#what-makes-it-fast).",
			},
		},
	}
}
