// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// maxClaims is the maximum number of claims of a pod that are looked up. It limits the cost of one request.
const maxClaims = 16

// NeedsClaims reports whether Pod may return warnings: the pod is not bound, its scheduler does not support CEL device
// constraints, and it uses claims.
func (c *Checker) NeedsClaims(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && len(pod.Spec.ResourceClaims) > 0 &&
		!slices.Contains(c.options.SchedulerNames, schedulerName(pod))
}

// Pod returns a warning for each template or unallocated claim of the pod that has a CEL device constraint or a preference. It
// must be called only if [Checker.NeedsClaims] returns true. claim and template return nil for an object that does not exist or
// can't be read.
func (c *Checker) Pod(pod *corev1.Pod, claim func(name string) *resourceapi.ResourceClaim, template func(name string) *resourceapi.ResourceClaimTemplate) []string {
	if !c.NeedsClaims(pod) {
		return nil
	}
	seen := map[string]bool{}
	var result []string
	for i := range pod.Spec.ResourceClaims[:min(maxClaims, len(pod.Spec.ResourceClaims))] {
		kind, name, used := usedBy(&pod.Spec.ResourceClaims[i], seen, claim, template)
		switch {
		case used == nil || used.Status.Allocation != nil:
		case v1alpha1.HasReference(used):
			result = append(result, fmt.Sprintf("spec.schedulerName: the scheduler %q does not support the CEL device constraint of %s %s, so the pod would never be scheduled; use %s",
				schedulerName(pod), kind, name, c.options.SchedulerNames[0]))
		case v1alpha1.HasPreference(used, func(string) bool { return false }):
			result = append(result, fmt.Sprintf("spec.schedulerName: the scheduler %q does not support the preference of %s %s and allocates any devices; use %s",
				schedulerName(pod), kind, name, c.options.SchedulerNames[0]))
		}
	}
	return result
}

// usedBy returns the claim or template that an entry of the pod names. It returns nil if an earlier entry named the same
// object.
func usedBy(entry *corev1.PodResourceClaim, seen map[string]bool, claim func(string) *resourceapi.ResourceClaim, template func(string) *resourceapi.ResourceClaimTemplate) (kind, name string, used *resourceapi.ResourceClaim) {
	switch {
	case entry.ResourceClaimName != nil:
		kind, name = "ResourceClaim", *entry.ResourceClaimName
	case entry.ResourceClaimTemplateName != nil:
		kind, name = "ResourceClaimTemplate", *entry.ResourceClaimTemplateName
	}
	if name == "" || seen[kind+"/"+name] {
		return kind, name, nil
	}
	seen[kind+"/"+name] = true
	if kind == "ResourceClaim" {
		return kind, name, claim(name)
	}
	if of := template(name); of != nil {
		return kind, name, &resourceapi.ResourceClaim{Spec: of.Spec.Spec}
	}
	return kind, name, nil
}

func schedulerName(pod *corev1.Pod) string {
	if pod.Spec.SchedulerName == "" {
		return corev1.DefaultSchedulerName
	}
	return pod.Spec.SchedulerName
}
