// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PreferencePolicy names a built-in preference.
// +enum
type PreferencePolicy string

// PolicyKeepWhole keeps sets of devices whole that other claims may ask for.
const PolicyKeepWhole PreferencePolicy = "KeepWhole"

// Policy describes a built-in preference.
type Policy struct {
	Name PreferencePolicy
	// Description completes the sentence "The policy takes the set …", for help texts and pages.
	Description string
	// ReadsShapes reports whether the policy depends on the shapes of sets that other claims ask for.
	ReadsShapes bool
	// StepWeight is the number of steps of the budget that one step with the policy costs.
	StepWeight int64
}

// Policies lists all built-in preferences and is read-only. Package allocator implements the search for each of them, and
// manifests/webhook/policy.yaml lists their names.
var Policies = []Policy{
	{
		Name:        PolicyKeepWhole,
		Description: "that breaks the fewest sets for other claims: the sets that satisfy the constraints of device classes, the largest first",
		ReadsShapes: true,
		// On a node with 64 devices, one step with this policy counts thousands of sets and takes as long as eight steps with
		// an expression.
		StepWeight: 8,
	},
}

// PolicyNamed returns the built-in preference with the name, or nil.
func PolicyNamed(name PreferencePolicy) *Policy {
	for i := range Policies {
		if Policies[i].Name == name {
			return &Policies[i]
		}
	}
	return nil
}

// PreferencePolicies are the names of the built-in preferences.
var PreferencePolicies = namesOf(Policies)

func namesOf(policies []Policy) []PreferencePolicy {
	names := make([]PreferencePolicy, len(policies))
	for i := range policies {
		names[i] = policies[i].Name
	}
	return names
}
