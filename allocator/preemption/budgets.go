// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// budget is a disruption budget, its selector read.
type budget struct {
	*policy.PodDisruptionBudget
	selector labels.Selector
}

// Budgets are disruption budgets that are for some pods.
type Budgets []budget

// NewBudgets reads selectors. A budget whose selector is wrong or empty is for nobody.
func NewBudgets(all []*policy.PodDisruptionBudget) Budgets {
	var result Budgets
	for _, pdb := range all {
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err == nil && !selector.Empty() {
			result = append(result, budget{pdb, selector})
		}
	}
	return result
}

// Allowed is how many pods each allows to be removed, as [Problem.Allowed] has it.
func (b Budgets) Allowed() []int32 {
	var allowed []int32
	for _, budget := range b {
		allowed = append(allowed, budget.Status.DisruptionsAllowed)
	}
	return allowed
}

// Of are the positions of those that a pod counts for. One that knows of its eviction has counted it.
func (b Budgets) Of(pod *v1.Pod) []int {
	var positions []int
	if len(pod.Labels) == 0 {
		return nil
	}
	for i, budget := range b {
		_, known := budget.Status.DisruptedPods[pod.Name]
		if budget.Namespace == pod.Namespace && !known && budget.selector.Matches(labels.Set(pod.Labels)) {
			positions = append(positions, i)
		}
	}
	return positions
}
