// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package noderesources checks whether a node has enough free resources for a pod: CPU, memory, other resources, number of
// pods, and host ports. It gives the same results as kube-scheduler's plugins NodeResourcesFit and NodePorts.
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

// TooManyPods and PortsInUse are the scheduler's reasons that don't name a resource.
const (
	TooManyPods = "Too many pods"
	PortsInUse  = "node(s) didn't have free ports for the requested pod ports"
)

// Need has the resources that one pod needs. It must not be modified.
type Need struct {
	// amounts has the positive requests of all containers plus the pod's overhead: CPU in thousandths, other resources in
	// units.
	amounts map[corev1.ResourceName]int64
	ports   []port
}

// Requests returns the need of a pod that has no node yet.
func Requests(pod *corev1.Pod) Need { return needOf(pod, false) }

// FreeResources has the free resources of a node.
type FreeResources struct {
	left map[corev1.ResourceName]int64
	// allocatable has the amounts that the node offers to pods when it runs none.
	allocatable map[corev1.ResourceName]int64
	// pods is the number of further pods that the node accepts.
	pods  int64
	ports []port
	// delegated reports whether a DeviceClass provides an extended resource, so that the allocator must check it. It may be
	// nil.
	delegated func(corev1.ResourceName) bool
}

// Free returns the free resources of a node that runs the given pods. Pods that have ended count as needing nothing.
func Free(node *corev1.Node, pods []*corev1.Pod) *FreeResources {
	r := &FreeResources{left: map[corev1.ResourceName]int64{}, allocatable: map[corev1.ResourceName]int64{}}
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

// Delegate excludes extended resources with a DeviceClass from the check, because the allocator of devices checks them. A
// resource that a device plugin on the node provides is still checked here. hasClass reports whether a class provides a
// resource.
func (r *FreeResources) Delegate(hasClass func(corev1.ResourceName) bool) { r.delegated = hasClass }

// Clone returns an independent copy.
func (r *FreeResources) Clone() *FreeResources {
	c := *r
	c.left, c.ports = maps.Clone(r.left), slices.Clone(r.ports)
	return &c
}

// Take subtracts the need of a pod from the free resources. Amounts may become negative.
func (r *FreeResources) Take(need Need) {
	r.pods--
	for name, amount := range need.amounts {
		r.left[name] -= amount
	}
	r.ports = append(r.ports, need.ports...)
}

// Lacks returns the reasons why a pod does not fit on the node, in the scheduler's words. It returns nothing if the pod fits.
func (r *FreeResources) Lacks(need Need) (reasons []string) {
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

// Pods returns how many pods with the same need fit on the node together, up to limit.
func (r *FreeResources) Pods(need Need, limit int) int {
	left := r.Clone()
	for n := range limit {
		if len(left.Lacks(need)) > 0 {
			return n
		}
		left.Take(need)
	}
	return limit
}

func (r *FreeResources) isDelegated(name corev1.ResourceName) bool {
	return r.delegated != nil && r.allocatable[name] == 0 && r.delegated(name)
}

func needOf(pod *corev1.Pod, hasNode bool) Need {
	requests := podresources.PodRequests(pod, podresources.PodResourcesOptions{
		// If a running pod is being resized, its status has the resources that it really uses.
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

// amountOf converts a quantity to an int in kube-scheduler's units.
func amountOf(name corev1.ResourceName, quantity quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}
