// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// nodeSelector says where the devices can be used: on this node if any of them
// is tied to it, else wherever all of their selectors match, nil for everywhere.
func nodeSelector(node string, choices []choice) (*v1.NodeSelector, error) {
	var term v1.NodeSelectorTerm
	for _, c := range choices {
		name, selector := c.Slice.Spec.NodeName, c.Slice.Spec.NodeSelector
		if ptr.Deref(c.Slice.Spec.PerDeviceNodeSelection, false) {
			name, selector = c.Device.NodeName, c.Device.NodeSelector
		}
		if name != nil || ptr.Deref(c.Device.BindsToNode, false) {
			return onlyOn(node), nil
		}
		if selector == nil || len(selector.NodeSelectorTerms) == 0 {
			continue
		}
		if n := len(selector.NodeSelectorTerms); n > 1 {
			// The terms of a selector are alternatives. The API allows one, because
			// alternatives of several devices could not be combined in one term.
			return nil, doesNotFit(fmt.Sprintf("unsupported ResourceSlice.NodeSelector with %d terms", n))
		}
		term.MatchFields = addRequirements(term.MatchFields, selector.NodeSelectorTerms[0].MatchFields)
		term.MatchExpressions = addRequirements(term.MatchExpressions, selector.NodeSelectorTerms[0].MatchExpressions)
	}
	if len(term.MatchFields) == 0 && len(term.MatchExpressions) == 0 {
		return nil, nil
	}
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}, nil
}

func onlyOn(node string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchFields: []v1.NodeSelectorRequirement{{
			Key:      "metadata.name",
			Operator: v1.NodeSelectorOpIn,
			Values:   []string{node},
		}},
	}}}
}

// addRequirements leaves out what is there already.
func addRequirements(to, from []v1.NodeSelectorRequirement) []v1.NodeSelectorRequirement {
	for _, requirement := range from {
		if !containsRequirement(to, requirement) {
			to = append(to, requirement)
		}
	}
	return to
}

// containsRequirement compares values as sets: their order has no meaning.
func containsRequirement(in []v1.NodeSelectorRequirement, requirement v1.NodeSelectorRequirement) bool {
	values := sets.New(requirement.Values...)
	for _, known := range in {
		if known.Key == requirement.Key && known.Operator == requirement.Operator && sets.New(known.Values...).Equal(values) {
			return true
		}
	}
	return false
}
