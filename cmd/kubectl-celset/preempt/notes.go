// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Part of every answer.
const (
	onlyDevices = "Only devices were looked at: not CPU, memory, ports, node selectors, affinity, spreading or taints of nodes, nor extenders."
	mayDiffer   = "The scheduler may evict more pods for these, and looks at some of the nodes only if there are many. It evicts for devices with the feature gate DRADevicePreemption."
)

// notes say what the answer does not know of.
func (p *preempting) notes() []string {
	notes := []string{onlyDevices, mayDiffer}
	if p.subject.Pod.Spec.SchedulingGroup != nil {
		notes = append(notes, "The pod is of a PodGroup: one that is scheduled as a whole evicts nobody for devices.")
	}
	if slices.ContainsFunc(p.state.Pods, func(pod *corev1.Pod) bool {
		return pod.Spec.SchedulingGroup != nil && pod.Spec.NodeName != ""
	}) {
		notes = append(notes, "Pods of PodGroups were looked at one by one: those that are disrupted as a whole go as a whole.")
	}
	return notes
}
