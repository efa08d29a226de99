// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

func waiting() Group {
	return Group{
		Title: "The pod waits",
		Introduction: "Nothing is wrong with the claim. Scheduling is tried again when devices become free or are " +
			"published. The numbers and the owners are in the line that begins with \"nearest miss\".",
		Entries: []Entry{
			{
				ID: "no-set",
				Texts: []string{
					"constraint %s: no set of %d free devices satisfies it",
					"constraint %s: no set that the rest of the claim leaves satisfies it",
					"%s free, but no set satisfies %s",
				},
				Cause: "Enough devices are free on the node, and no set of them makes the expression true.",
				Cure: "Wait, end one of the claims that are in the way, or ask for a smaller set. If it does not fit on an empty " +
					"node either, the expression or the count is wrong: `kubectl celset check` and `kubectl celset simulate` show what it means.",
			},
			{
				ID: "too-few",
				Texts: []string{
					"request %s: %d of %d devices",
					"request %s wants %d devices, %d of %d that match are free",
				},
				Cause: "Fewer devices are free and selected than are wanted, whatever the constraint says.",
				Cure:  "Wait, add nodes, or ask for fewer. If fewer match than the node has, look at the selectors and at taints of devices.",
			},
			{
				ID: "all-not-free",
				Texts: []string{
					"request %s: %d of %d devices, all are wanted",
					"request %s: no device matches, all are wanted",
				},
				Cause: "`allocationMode: All` wants every matching device of the node, and one is in use or there is none.",
				Cure:  "Wait for the node to become empty, or ask for a count.",
			},
			{
				ID:    "rest-does-not-fit",
				Texts: []string{"constraint %s: no set that satisfies it fits the rest of the claims"},
				Cause: "There are sets for this constraint, and with none of them the pod's other requests or constraints can be met.",
				Cure:  "Look at what is asked for together: two constraints on the same devices may exclude each other.",
			},
			{
				ID:    "no-combination",
				Texts: []string{"no combination of free devices meets all requests and constraints"},
				Cause: "Each request could be met alone. Together they want the same devices, or `matchAttribute` and the like exclude it.",
				Cure:  "Look at what is asked for together, and whether two requests compete for the same few devices.",
			},
			{
				ID: "nearest-miss",
				Texts: []string{
					"nearest miss: node …: …",
					"in the way: …",
				},
				Cause: "Of the nodes that were refused this one lacks least. \"In the way\" are claims of which at least one would have " +
					"to give up its devices. Only those of the pod's own namespace are named; others are counted, as \"2 claims of other namespaces\".",
				Cure: "It is an explanation and no error. `kubectl celset explain` says the same for every node, and names the claims that you may read.",
			},
			{
				ID:    "never",
				Texts: []string{"it would not fit either if all devices of the node were free"},
				Cause: "The expression is false for every set of the node's devices.",
				Cure:  "Correct the expression or the count, or add nodes of another kind.",
			},
			{
				ID:    "invalid-pool",
				Texts: []string{"invalid resource pools were encountered"},
				Cause: "A driver's ResourceSlices for the node contradict each other; see the entries on pools below.",
				Cure:  "The vendor of the driver has to correct what it publishes. Restarting the driver's pod on the node often helps.",
			},
			{
				ID:    "one-of-several",
				Texts: []string{"cannot add device %s because a claim constraint would not be satisfied"},
				Cause: "With `allocationMode: All` a `matchAttribute` or `distinctAttribute` does not hold for all devices of the node.",
				Cure:  "Narrow the request with a selector, so that All means devices which agree.",
			},
			{
				ID: "unknown-to-scheduler", Elsewhere: true,
				Texts: []string{"cannot allocate all claims"},
				Cause: "The pod was looked at by a scheduler that does not know CEL constraints. It fails closed.",
				Cure:  "Set `schedulerName` in the pod, or run both profiles in one process: [two schedulers](two-schedulers.md).",
			},
		},
	}
}

func definitions() Group {
	return Group{
		Title: "The definition",
		Introduction: "They come with the path of the field, such as " +
			"`spec.devices.config[0].opaque.parameters.expression`. The webhook says them when the object is created, " +
			"the scheduler when a pod uses it.",
		Entries: []Entry{
			{
				ID: "wrong-type", Texts: []string{"must be …"},
				Cause: "`apiVersion` or `kind` is missing.",
				Cure:  "Write `apiVersion: celset.dev/v1alpha1` and `kind: CELDeviceConstraint`. One that is there and is something else is `Unsupported value`.",
			},
			{
				ID: "no-parameters", Texts: []string{"must be a …"},
				Cause: "The configuration of the driver celset.dev has no parameters.",
				Cure:  "Add the CELDeviceConstraint, or remove the configuration.",
			},
			{
				ID: "unknown-field", Texts: []string{"… (field names are case-sensitive, each may be set once)"},
				Cause: "A field is misspelt, is none of a CELDeviceConstraint, or is there twice.",
				Cure:  "The fields are `apiVersion`, `kind`, `name` and `expression`.",
			},
			{
				ID: "field-type", Texts: []string{"must be %s, but is: %s"},
				Cause: "A field has a value of another type, such as a number where a string belongs.",
				Cure:  "Quote it. An expression is best written as a block, `expression: |`.",
			},
			{
				ID: "json", Texts: []string{"must be valid JSON: …"},
				Cause: "The parameters can't be read at all. It takes a client that sends bytes of its own.",
				Cure:  "Create the object with kubectl.",
			},
			{
				ID: "duplicate-name", Texts: []string{"already defined at %s: rename or remove one of them"},
				Cause: "Two definitions in one object have the same name.",
				Cure:  "As it says.",
			},
			{
				ID: "no-name", Texts: []string{"claims refer to it as matchAttribute %s/<name>"},
				Cause: "The definition, or the reference behind the slash, has no name.",
				Cure:  "Give it one: letters, digits and underscores, not beginning with a digit.",
			},
			{
				ID: "name-form", Elsewhere: true, Texts: []string{"must be a valid C identifier (e.g. 'my_name', …)", "Too long: may not be more than … bytes"},
				Cause: "The name can't stand behind the slash of a `matchAttribute`, or is too long for that; or the expression is too long.",
				Cure:  "Use letters, digits and underscores, not beginning with a digit; [limits](limits.md) has the lengths.",
			},
			{
				ID: "no-expression", Texts: []string{"must be a CEL expression over `devices` that returns a bool"},
				Cause: "`expression` is empty.",
				Cure:  "Write one: [Writing constraints](constraints.md).",
			},
			{
				ID: "expression-too-long", Texts: []string{"the expression has %d bytes, the limit is %d"},
				Cause: "Expressions have the limit that device selectors have.",
				Cure:  "A relation is shorter than a list of all that satisfies it: compare attributes instead of enumerating devices.",
			},
			{
				ID: "expression-too-large", Texts: []string{
					"the expression has more than %d words and signs: split it into several",
					"the expression has %d characters that are not ASCII, more than %d: leave some out",
					"the expression has more than %d parts after its macros are expanded: split it into several",
					"the expression is nested more than %d levels deep: give parts a name with cel.bind, or split it into several",
					"lists, maps and types are nested too deep: a type has more than %d names",
				},
				Cause: "Compiling takes time and memory that grow faster than the text, so what is compiled is bounded.",
				Cure:  "Several constraints are joined like `&&`. A macro over the devices says in one line what a list of conditions says in hundreds.",
			},
			{
				ID: "pattern-too-large", Texts: []string{
					"the regular expression has %d bytes, the limit is %d",
					"the regular expression names %d classes of characters, the limit is %d",
					"the regular expression is compiled to more than %d instructions: repeat less",
				},
				Cause: "A counted repetition such as `(abcdefghij){1000}` takes a few characters and ten thousand instructions; a class such as `\\pL` is a large table.",
				Cure:  "Write a simpler pattern, or compare with `startsWith`, `contains` or a list of values.",
			},
			{
				ID: "macro-variable", Texts: []string{"…() variable name must be a simple identifier"},
				Cause: "The first argument of `optMap` or `optFlatMap` is no name.",
				Cure:  "Write a name there, and use it in the second argument.",
			},
		},
	}
}

func references() Group {
	return Group{
		Title: "The reference",
		Entries: []Entry{
			{
				ID: "not-found", Texts: []string{"no %s of that name in %s: define it in one of them"},
				Cause: "`matchAttribute: celset.dev/<name>` has no definition of that name; the message lists where it was looked for.",
				Cure:  "Correct the name, or add the definition to the claim or to the class of a covered request. A class that is not that of a covered request is not looked at.",
			},
			{
				ID: "classes-disagree", Texts: []string{"%s and %s define it differently: make them equal, or define it in the claim"},
				Cause: "Two covered requests have different classes, and both define the name.",
				Cure:  "As it says. Equal means the same text.",
			},
			{
				ID: "class-missing", Texts: []string{"can't look it up in DeviceClass %s: %v", "could not retrieve device class %s: %w"},
				Cause: "The class does not exist, or can't be read just now.",
				Cure:  "Create it. Pods that wait for a class are tried again when it comes.",
			},
			{
				ID: "use-matchattribute", Texts: []string{"the domain %s is for CEL device constraints: use matchAttribute: %s"},
				Cause: "The reference is written as `distinctAttribute`.",
				Cure:  "Use `matchAttribute`. It is a reference, whatever the expression says.",
			},
			{
				ID: "two-in-one", Texts: []string{"may not be set beside matchAttribute: use a constraint of its own"},
				Cause: "`matchAttribute` and `distinctAttribute` stand in one entry.",
				Cure:  "Make two entries.",
			},
			{
				ID: "unknown-request", Texts: []string{"must be the name of a request in the claim, or of a request and one of its alternatives separated by '/'"},
				Cause: "`requests` of the constraint names none that the claim has.",
				Cure:  "Correct it. Without `requests` the constraint is about all of them.",
			},
			{
				ID: "derived-in-our-domain", Texts: []string{"the domain %s is for CEL device constraints: choose another domain"},
				Cause: "A derived attribute is in the domain celset.dev. With it, a scheduler that does not know the constraint would no longer fail closed.",
				Cure:  "Choose another domain.",
			},
			{
				ID: "gate", Texts: []string{"resourceclaim %s has a CEL device constraint, but the feature gate %s is disabled: enable it with --feature-gates=%s=true"},
				Cause: "The scheduler runs without the gate. Claims that are allocated stay.",
				Cure:  "The operator starts celset-scheduler with it.",
			},
		},
	}
}
