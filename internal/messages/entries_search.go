// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

func expressions() Group {
	return Group{
		Title:        "The expression does not compile",
		Introduction: "With line and column, and a caret below the place.",
		Entries: []Entry{
			{
				ID: "syntax", Elsewhere: true, Texts: []string{"Syntax error: …", "undeclared reference to '…'", "found no matching overload for '…' applied to '…'"},
				Cause: "CEL does not understand the expression: a bracket is missing, a name or a function does not exist, or a function is applied to other types than it has. " +
					"The one variable is `devices`.",
				Cure: "Correct it at the caret. `kubectl celset check -f` compiles without a cluster.",
			},
			{
				ID: "not-bool", Texts: []string{"the expression must return bool, it returns %s", "the expression must return bool, it returned %s"},
				Cause: "The result is a number, a list or the like. The second form is about expressions whose type is only known when they are evaluated.",
				Cure:  "Compare it with something: `… .size() >= 2`.",
			},
			{
				ID: "not-utf8", Texts: []string{"the expression is not valid UTF-8"},
				Cause: "There are bytes in it that are no text.",
				Cure:  "Save the file as UTF-8.",
			},
			{
				ID: "can-not-check", Texts: []string{"CEL can't check the expression, write it another way: %v"},
				Cause: "CEL's own checker gave up, for example on very deep nesting.",
				Cure:  "Write it flatter, for example with `cel.bind`, and please report it.",
			},
			{
				ID: "estimate", Texts: []string{"an evaluation may cost up to %d by estimate, the limit is %d: %s", "estimate the cost: …"},
				Cause: "The expression is too expensive for the largest input that it may get. Selectors of clusters are checked so; constraints on devices are measured when they are evaluated.",
				Cure:  "Nest fewer loops.",
			},
		},
	}
}

func evaluations() Group {
	return Group{
		Title: "The expression fails",
		Introduction: "The message names the claim, the constraint, the node and the devices for which it failed. Scheduling of the pod is " +
			"aborted for all nodes: another set might hide the mistake by chance. " +
			"CEL's own rules decide: `false && error` is `false`.",
		Entries: []Entry{
			{
				ID: "no-such-key", Elsewhere: true, Texts: []string{"no such key: …"},
				Cause: "A device of the set does not have the attribute or the capacity, or the domain is misspelt: a domain that a device does not have is an empty map.",
				Cure: "Guard it, `has(d.attributes['x.example.com'].y)` or `.?y.orValue(0)`, or let a selector of the request keep such devices out. " +
					"With two drivers in the set, first ask `d.driver`.",
			},
			{
				ID: "no-such-overload", Elsewhere: true, Texts: []string{"no such overload"},
				Cause: "Two values of different types were put together: attributes have no type before a device has them. An int and a string are the usual pair.",
				Cure:  "Convert one: `int(…)`, `string(…)`. `==` between different types is false and no error.",
			},
			{
				ID: "index", Elsewhere: true, Texts: []string{"index out of bounds: …"},
				Cause: "`devices[i]` or another list is shorter than was thought.",
				Cure:  "Ask for `size()` first, or write it without places: an expression should not depend on the order of devices.",
			},
			{
				ID: "no-such-field", Texts: []string{"no such field '%s'"},
				Cause: "A device has `driver`, `attributes`, `capacity` and `allowMultipleAllocations`; its name is not visible.",
				Cure:  "Use one of these. Drivers publish an attribute for what tells devices apart.",
			},
			{
				ID: "device-conversion", Texts: []string{"type conversion error from '%s' to '%v'", "type conversion error from '%s' to '%s'"},
				Cause: "A device is used as another value, such as `string(d)`.",
				Cure:  "Use one of its attributes.",
			},
			{
				ID: "attribute-value", Texts: []string{"unsupported attribute value", "parse semantic version: %v"},
				Cause: "The driver published an attribute without value, of a type that this version of Kubernetes does not have, or a version that is none.",
				Cure:  "The vendor of the driver has to correct it. Until then an expression that does not read the attribute works.",
			},
			{
				ID: "cost-limit", Texts: []string{"one evaluation exceeds the cost limit of %d%s: %s", " with this call of %s"},
				Cause: "One evaluation on one set is too expensive. The limit is that of device selectors. If a call is named, it was not made: " +
					"it would have taken the rest of the limit by itself.",
				Cure: "Ask for fewer devices or write a cheaper expression: three nested loops over 32 devices are 32,768 rounds. Of a call that " +
					"is named, make the operands smaller: shorter texts, shorter lists, a simpler regular expression.",
			},
			{
				ID: "memory-limit", Texts: []string{"one evaluation exceeds the memory limit of %d bytes%s: make shorter texts and lists"},
				Cause: "The texts, lists and maps that the functions of one evaluation make would be larger than that together.",
				Cure:  "`replace` with an empty text, `join` and `+` in loops, `lists.range` and `format` make much of little: write the comparison without them.",
			},
			{
				ID: "selector-limit", Texts: []string{"the selector may take more than %d CEL cost units or %d bytes on one device, most of it in %s at line %d, column %d: " +
					"compare attributes directly, with shorter texts and lists"},
				Cause: "A device selector is evaluated by Kubernetes' own evaluator, which can't be stopped during a call. What it may take is found " +
					"out before, from the largest devices that the API allows.",
				Cure: "Write the call that is named with smaller operands. Large exponents of quantities, and quantities of computed texts, have no bound.",
			},
			{
				ID: "interrupted", Texts: []string{"evaluation interrupted: …", "filter operation aborted: %w"},
				Cause: "The time for the node was over, or the scheduler is shutting down.",
				Cure:  "See \"timed out\" below.",
			},
			{
				ID: "internal-plan", Texts: []string{"bind function %s: %w", "plan a part of %q: %w", "extend the CEL environment for %s: %w", "extend the Kubernetes CEL environment for %s: %w"},
				Cause: "A defect of celset, or a build with another version of a library.",
				Cure:  "Report it.",
			},
		},
	}
}

func budgets() Group {
	return Group{
		Title: "The search is too long",
		Introduction: "Nothing is ever allocated because a search ended early. The pod is tried again after a while, and other pods go on. " +
			"[Limits](limits.md) has the numbers.",
		Entries: []Entry{
			{
				ID: "budget", Texts: []string{"claim %s, constraint %s, node %s: %s of %d %s, with %d of %d sets of devices left undecided: " +
					"narrow the candidates with selectors or matchAttribute,%s or raise budget.%s in the scheduler plugin's DynamicResourcesCELArgs"},
				Cause: "There are more sets than the search can look at, and the expression does not tell it which to leave out.",
				Cure: "In this order: write the expression so that [more of it can be read](constraints.md#what-makes-it-fast); narrow the candidates " +
					"with a selector or a `matchAttribute` in the same claim; raise the budget that it names, and `attemptTimeout` with it. " +
					"`budget.attemptCost` and `budget.attemptSteps` are for all nodes of an attempt together.",
			},
			{
				ID: "budget-cost", Texts: []string{"the evaluations together exceed the cost budget of %d: %s"},
				Cause: "The same, said by an evaluation: all of them together cost more than `budget.cost`.",
				Cure:  "As above.",
			},
			{
				ID: "timed-out", Elsewhere: true, Texts: []string{"timed out trying to allocate devices"},
				Cause: "The search for one node took longer than `filterTimeout`. The budgets usually end it before.",
				Cure:  "As above; or the machine is overloaded.",
			},
			{
				ID: "attempt-over", Texts: []string{"not looked at, for the attempt to schedule the pod took longer than %v, and others wait: " +
					"raise attemptTimeout in the scheduler plugin's DynamicResourcesCELArgs if it needs more"},
				Cause: "Pods of other namespaces wait, and the attempt took its time on other nodes: [whose turn it is](fairness.md#an-attempt).",
				Cure:  "None is needed if it fits somewhere else: it is tried again. Else narrow the nodes or the candidates, or raise `attemptTimeout`.",
			},
			{
				ID: "back-off", Texts: []string{"taking too much of the scheduler's time, %d times in a row: tried again at %s; the last time: %s"},
				Cause: "The last attempts for a claim of the pod used up a budget or their time; the text ends with what the last one said. The time is UTC.",
				Cure:  "See what it said. A new claim is tried at once; the same one [at that time](fairness.md#back-off).",
			},
			{
				ID: "share", Texts: []string{"pods of namespace %s took more than %d percent of the scheduler's time, and pods of other namespaces wait: tried again when these had their turn"},
				Cause: "The namespace has used up its [share](fairness.md#share) while others wait.",
				Cure:  "None is needed: it is tried as soon as nobody waits who has not. If that lasts, look which claims of the namespace take long.",
			},
			{
				ID: "interrupted-attempt", Texts: []string{"the scheduler ended while it tried pod %s/%s, which it did since %s: pods that are not known to do that are tried first"},
				Cause: "The event `SchedulingInterrupted`. The scheduler crashed, was killed or was restarted because it hung; the pod need not be at fault.",
				Cure:  "None is needed if it happens once: the pod is [tried again](fairness.md#watchdog). If it happens again, look at the pod's claims, and report it.",
			},
			{
				ID: "no-progress", Texts: []string{"a scheduling cycle has made no progress for %v, the limit is %v"},
				Cause: "`/livez` of the scheduler says so. Something that nobody foresaw takes longer than `--cycle-timeout`.",
				Cure:  "The kubelet restarts it. The log names the pod; report it.",
			},
			{
				ID: "journal", Texts: []string{
					"read which pods were being tried: %w", "read which pods were being tried: annotation %s of Lease %s: %w",
					"write which pods were being tried: %w",
				},
				Cause: "In the log of the scheduler: it can't use the Lease `celset-scheduler-attempts`, most often for want of rights.",
				Cure:  "Apply `manifests/scheduler/rbac.yaml`. Until then a pod that the scheduler ended with is tried again in its order.",
			},
		},
	}
}

func requests() Group {
	return Group{
		Title:        "The requests of the claim",
		Introduction: "These are about what Kubernetes itself defines. Kubernetes' own allocator says the same, in the same words where it has some.",
		Entries: []Entry{
			{
				ID: "too-many-devices", Texts: []string{"adding %d devices exceeds the claim limit of %d, with %d already accounted for", "exact count %d is too large"},
				Cause: "A claim can hold a limited number of devices.",
				Cure:  "Ask for fewer, or spread them over several claims: a constraint is about the devices of one claim.",
			},
			{
				ID: "feature-off", Texts: []string{
					"has %s, but the %s feature is disabled",
					"admin access is requested, but the feature is disabled",
					"cannot handle request with derived attributes, the feature is disabled",
				},
				Cause: "The claim uses a feature of Kubernetes that the scheduler has switched off.",
				Cure:  "The operator enables the gate in celset-scheduler as in the API server.",
			},
			{
				ID: "newer-api", Texts: []string{
					"neither exactly nor firstAvailable is set (unsupported request type?)",
					"missing device class name (unsupported request type?)",
					"selector #%d: CEL expression empty (unsupported selector type?)",
					"%s: selector #%d: CEL expression empty (unsupported selector type?)",
					"claim %s, constraint #%d: empty constraint (unsupported constraint type?)",
					"unsupported count mode %s",
					"unsupported ResourceSlice.NodeSelector with %d terms",
				},
				Cause: "The API server stores something that this version does not know: it is newer.",
				Cure:  "Update celset: [versions](versions.md).",
			},
			{
				ID: "selector-length", Texts: []string{"claim %s, request %s: selector #%d is longer than %d bytes"},
				Cause: "The claim has a device selector that the API server would have refused.",
				Cure:  "Make a claim with a shorter one.",
			},
			{
				ID: "selector", Texts: []string{"%s: selector #%d: CEL compile error: %w", "%s: selector #%d on device %s: CEL runtime error: %w"},
				Cause: "A device selector of the request or of its class is wrong, or fails on a device.",
				Cure:  "Correct it. In selectors the variable is `device`, in constraints it is `devices`.",
			},
			{
				ID: "derived-attribute", Texts: []string{"compile: %w"},
				Cause: "The expression of a derived attribute does not compile.",
				Cure:  "Correct it in the request.",
			},
			{
				ID: "capacity", Texts: []string{
					"capacity request cannot be represented in the device's range arithmetic", "capacity value is negative",
					"%w: request %s", "%w: request %s, rounded up to the next step",
				},
				Cause: "A capacity that was asked for, or that a device publishes, is outside of what can be computed with.",
				Cure:  "Ask for another amount; whole units are safe.",
			},
			{
				ID: "pool-updating", Texts: []string{"asks for all devices, but resource pool %s is currently being updated"},
				Cause: "The driver is publishing a new generation of the pool, so it is not known what all devices are.",
				Cure:  "Wait. If it lasts, the driver does not publish all its slices.",
			},
			{
				ID: "pool-invalid-all", Texts: []string{"asks for all devices, but resource pool %s is currently invalid"},
				Cause: "The slices of the pool contradict each other; see below.",
				Cure:  "See below.",
			},
		},
	}
}

func hardware() Group {
	return Group{
		Title:        "What a driver publishes",
		Introduction: "The vendor of the driver has to correct these. Devices of the pool are not allocated until then.",
		Entries: []Entry{
			{
				ID: "duplicate-device", Texts: []string{"duplicate device name …"},
				Cause: "Two slices of one pool have a device of the same name.",
				Cure:  "Names are unique within a pool.",
			},
			{
				ID: "duplicate-counter", Texts: []string{"duplicate counter set name …"},
				Cause: "Two slices of one pool define the same counter set.",
				Cure:  "Define it once.",
			},
			{
				ID: "missing-counter", Texts: []string{"counter set %s not found", "counter %s not found in counter set %s"},
				Cause: "A device consumes a counter that the pool does not define.",
				Cure:  "Define it, in a slice of the same pool and generation.",
			},
		},
	}
}

func scheduler() Group {
	return Group{
		Title:        "The scheduler's configuration",
		Introduction: "The scheduler does not start, unless it says otherwise.",
		Entries: []Entry{
			{
				ID: "arguments-format", Texts: []string{"must be JSON or YAML: %w", "must be one document, but more follows it"},
				Cause: "`args` of DynamicResourcesCEL can't be read.",
				Cure:  "See the example in [Limits](limits.md).",
			},
			{
				ID: "arguments-kind", Texts: []string{"%s: got arguments of type %T, want an object of kind DynamicResourcesCELArgs"},
				Cause: "`args` are those of another plugin.",
				Cure:  "`apiVersion: config.celset.dev/v1alpha1`, `kind: DynamicResourcesCELArgs`; both may be left out.",
			},
			{
				ID: "arguments-duration", Texts: []string{`must be a duration with a unit, such as "10s" or "1m30s"`, "must be zero, for no limit, or positive", "must be at least …"},
				Cause: "`filterTimeout`, `bindingTimeout`, `attemptTimeout` or one of `backOff` or `share` is out of range or has no unit.",
				Cure:  "As it says.",
			},
			{
				ID: "arguments-budget", Texts: []string{"must be at least 1"},
				Cause: "One of `budget` is zero or less. There is no way to have no budget.",
				Cure:  "Leave it out for the default.",
			},
			{
				ID: "arguments-share", Texts: []string{"must be from 1 to 100"},
				Cause: "`share.percent` is no percentage. 100 means that no namespace is put off.",
				Cure:  "Leave it out for the default.",
			},
			{
				ID: "arguments-cache", Texts: []string{
					`must be a quantity, such as "256Mi" or "1Gi"`, "must be at least %d bytes, which is 1Mi", "must be a whole number of bytes, at most 1Ti",
				},
				Cause: "`cacheSize` is no quantity, or smaller or larger than makes sense.",
				Cure:  "Leave it out for the default: [Caches](limits.md#caches) says what there is room for.",
			},
			{
				ID: "arguments-profiles", Texts: []string{
					"profile %s has %s %s, and profile %s has %s: it is for the whole scheduler, so set it in one profile, or the same in all",
				},
				Cause: "Two profiles with the plugin have `share` or `backOff`, and not the same one.",
				Cure:  "Remove it from one of them: the other's is for all, in whatever order they are ([whose turn it is](fairness.md#share)).",
			},
			{
				ID: "build", Texts: []string{
					"this build of celset does not fit the DynamicResources plugin it was compiled with: …: build it with the version of Kubernetes that go.mod names",
					"its cycle state is %v, not a pointer to a struct",
					"its cycle state is a %s, not a %s",
					"its cycle state %v has no field %s",
					"the field %s of its cycle state %v is a %v, not a %v",
					"its cycle state is %v, at start it was %v",
					"PreFilter of a pod without claims returned %v",
					"PreFilter wrote no cycle state under %s: %v",
				},
				Cause: "celset-scheduler was built with another version of Kubernetes than its go.mod names. It checks that when it starts.",
				Cure:  "Use a released build, or build it with the versions in go.mod.",
			},
			{
				ID: "gather", Texts: []string{"gather allocation state: %w (last attempt: %w)"},
				Cause: "Allocations changed faster than the scheduler could take stock of them, for five seconds. The pod is tried again.",
				Cure:  "None is needed. If it happens often, the scheduler lacks CPU.",
			},
		},
	}
}
