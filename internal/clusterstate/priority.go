// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"
)

// setPriorities does to pods from files what the API server does when they are created: a pod has the
// priority of its class, or of the one that is for all others. Pods of classes that were not read stay
// without.
func (s *State) setPriorities() {
	for _, pod := range s.Pods {
		if pod.Spec.Priority != nil {
			continue
		}
		class := s.priorityClassOf(pod)
		if class == nil {
			continue
		}
		pod.Spec.Priority = ptr.To(class.Value)
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = class.PreemptionPolicy
		}
	}
}

// priorityClassOf is nil if there is none. Of several that are for all others the least counts.
func (s *State) priorityClassOf(pod *corev1.Pod) *scheduling.PriorityClass {
	var usual *scheduling.PriorityClass
	for _, class := range s.PriorityClasses {
		if pod.Spec.PriorityClassName != "" {
			if class.Name == pod.Spec.PriorityClassName {
				return class
			}
			continue
		}
		if class.GlobalDefault && (usual == nil || class.Value < usual.Value) {
			usual = class
		}
	}
	return usual
}
