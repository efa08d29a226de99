// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"fmt"

	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/search"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// newPolicyObjective returns the objective function of a built-in policy, and adds it as a constraint to the requests that the
// preference covers. The requests have one alternative each.
func newPolicyObjective(s *search.Search, p *plan.Preference, all []search.Alternatives) (objectiveFunction, error) {
	switch p.Policy.Name {
	case v1alpha1.PolicyKeepWhole:
		f := newFragmentation(s, p, all)
		return f, f.begin(p.Shapes, chosenFor(s.Improves, f))
	default:
		return nil, fmt.Errorf("preference %s: policy %s has no search", p.Name, p.Policy.Name)
	}
}
