// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// budget is a disruption budget with its parsed selector.
type budget struct {
	*policy.PodDisruptionBudget
	selector labels.Selector
}

// Budgets is a list of disruption budgets that select pods.
type Budgets []budget

// NewBudgets returns the budgets with parsed selectors. It leaves out a budget with an invalid or empty selector.
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

// Allowed returns, for each budget, the number of pods that may be removed, for [Problem.Allowed].
func (b Budgets) Allowed() []int32 {
	var allowed []int32
	for _, budget := range b {
		allowed = append(allowed, budget.Status.DisruptionsAllowed)
	}
	return allowed
}

// Of returns the positions of the budgets that removing the pod counts against. It leaves out a budget that lists the pod as
// disrupted, because this budget has counted the pod already.
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
