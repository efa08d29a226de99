// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package noderesources compares what a pod requests with what a node has left: CPU, memory, other resources, the number
// of pods, and host ports. The results are those of the plugins NodeResourcesFit and NodePorts of kube-scheduler.
//
//	need := noderesources.Requests(pod)
//	free := noderesources.Free(node, podsOnNode)
//	if reasons := free.Lacks(need); len(reasons) == 0 {
//		free.Take(need)
//	}
package noderesources

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	podresources "k8s.io/component-helpers/resource"
)

// TooManyPods and PortsInUse are the reasons of the scheduler that are about no resource.
const (
	TooManyPods = "Too many pods"
	PortsInUse  = "node(s) didn't have free ports for the requested pod ports"
)

// Need is what one pod needs of a node. It must not be modified.
type Need struct {
	// amounts has the positive requests of all containers with the overhead: thousandths of CPU, units of everything else.
	amounts map[corev1.ResourceName]int64
	ports   []port
}

// Requests returns what a pod that has no node needs of one.
func Requests(pod *corev1.Pod) Need { return needOf(pod, false) }

// Room is what is left of a node.
type Room struct {
	left map[corev1.ResourceName]int64
	// allocatable are the amounts of the empty node.
	allocatable map[corev1.ResourceName]int64
	// pods is the number of further pods.
	pods  int64
	ports []port
	// delegated reports whether a DeviceClass stands for an extended resource, so that devices are allocated for it. It may be nil.
	delegated func(corev1.ResourceName) bool
}

// Free returns what a node has left beside the pods that have it as their node. Pods that have ended need nothing.
func Free(node *corev1.Node, pods []*corev1.Pod) *Room {
	r := &Room{left: map[corev1.ResourceName]int64{}, allocatable: map[corev1.ResourceName]int64{}}
	for name, quantity := range node.Status.Allocatable {
		r.allocatable[name] = amountOf(name, quantity)
	}
	maps.Copy(r.left, r.allocatable)
	r.pods = r.allocatable[corev1.ResourcePods]
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			r.Take(needOf(pod, true))
		}
	}
	return r
}

// Delegate has extended resources left to the allocator of devices: those for which a DeviceClass stands, on a node that has
// none of them from a device plugin.
func (r *Room) Delegate(hasClass func(corev1.ResourceName) bool) { r.delegated = hasClass }

// Clone returns a copy of which more can be taken.
func (r *Room) Clone() *Room {
	c := *r
	c.left, c.ports = maps.Clone(r.left), slices.Clone(r.ports)
	return &c
}

// Take subtracts what a pod needs, also if there is less.
func (r *Room) Take(need Need) {
	r.pods--
	for name, amount := range need.amounts {
		r.left[name] -= amount
	}
	r.ports = append(r.ports, need.ports...)
}

// Lacks returns what keeps a pod from the node, in the words of the scheduler. It is empty if the pod fits.
func (r *Room) Lacks(need Need) (reasons []string) {
	if r.pods < 1 {
		reasons = append(reasons, TooManyPods)
	}
	for _, name := range slices.Sorted(maps.Keys(need.amounts)) {
		if r.isDelegated(name) {
			continue
		}
		if need.amounts[name] > r.left[name] {
			reasons = append(reasons, fmt.Sprintf("Insufficient %s", name))
		}
	}
	if slices.ContainsFunc(need.ports, func(wanted port) bool { return slices.ContainsFunc(r.ports, wanted.conflicts) }) {
		reasons = append(reasons, PortsInUse)
	}
	return reasons
}

// Pods returns how many pods that need the same fit beside each other, at most limit.
func (r *Room) Pods(need Need, limit int) int {
	left := r.Clone()
	for n := range limit {
		if len(left.Lacks(need)) > 0 {
			return n
		}
		left.Take(need)
	}
	return limit
}

func (r *Room) isDelegated(name corev1.ResourceName) bool {
	return r.delegated != nil && r.allocatable[name] == 0 && r.delegated(name)
}

func needOf(pod *corev1.Pod, hasNode bool) Need {
	requests := podresources.PodRequests(pod, podresources.PodResourcesOptions{
		// A pod that runs may be in the middle of being resized.
		UseStatusResources: hasNode, InPlacePodLevelResourcesVerticalScalingEnabled: hasNode,
	})
	need := Need{amounts: map[corev1.ResourceName]int64{}}
	for name, quantity := range requests {
		if amount := amountOf(name, quantity); amount > 0 {
			need.amounts[name] = amount
		}
	}
	need.ports = portsOf(pod)
	return need
}

// amountOf has the units of kube-scheduler.
func amountOf(name corev1.ResourceName, quantity quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}
