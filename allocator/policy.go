// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// preferencePolicy is a built-in preference with its search.
type preferencePolicy struct {
	v1alpha1.Policy
	// newObjective adds the objective of a preference to the requests that the preference covers. The requests have
	// one alternative each.
	newObjective func(s *search, p *preference, all []alternatives) (objective, error)
}

// newPolicy adds the search of a policy in [v1alpha1.Policies].
func newPolicy(described v1alpha1.Policy) *preferencePolicy {
	p := &preferencePolicy{Policy: described}
	switch described.Name {
	case v1alpha1.PolicyKeepWhole:
		p.newObjective = newKeepWhole
	}
	return p
}

// policyNamed returns the policy with the name, nil for a preference with an expression.
func policyNamed(name v1alpha1.PreferencePolicy) *preferencePolicy {
	i := slices.IndexFunc(v1alpha1.Policies, func(p v1alpha1.Policy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return newPolicy(v1alpha1.Policies[i])
}
