// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// setDefaults sets the defaults that the API server would set, because objects in files may lack them.
func setDefaults(object runtime.Object) {
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		setClaimDefaults(&object.Spec.Devices)
	case *resourceapi.ResourceClaimTemplate:
		setClaimDefaults(&object.Spec.Spec.Devices)
	case *corev1.Pod:
		object.Spec.SchedulerName = cmp.Or(object.Spec.SchedulerName, corev1.DefaultSchedulerName)
		setRequests(object.Spec.InitContainers)
		setRequests(object.Spec.Containers)
	case *corev1.Node:
		setAmounts(object)
	}
}

// plenty is the amount of a resource that a node in a file does not mention. Its thousandths fit into an int64.
var plenty = resource.MustParse("1P")

// setAmounts adds the amounts that a node with some amounts does not mention. Files about devices often omit CPU and memory.
func setAmounts(node *corev1.Node) {
	if len(node.Status.Allocatable) == 0 {
		return
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods} {
		capacity, has := node.Status.Capacity[name]
		switch _, said := node.Status.Allocatable[name]; {
		case said:
		case has:
			node.Status.Allocatable[name] = capacity
		default:
			node.Status.Allocatable[name] = plenty.DeepCopy()
		}
	}
}

// setRequests sets the requests of containers that only have limits.
func setRequests(containers []corev1.Container) {
	for i := range containers {
		resources := &containers[i].Resources
		if len(resources.Limits) == 0 {
			continue
		}
		requests := maps.Clone(resources.Limits)
		maps.Copy(requests, resources.Requests)
		resources.Requests = requests
	}
}

func setClaimDefaults(devices *resourceapi.DeviceClaim) {
	for i := range devices.Requests {
		request := &devices.Requests[i]
		if exact := request.Exactly; exact != nil {
			setCount(&exact.AllocationMode, &exact.Count)
			setTolerations(exact.Tolerations)
		}
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			setCount(&sub.AllocationMode, &sub.Count)
			setTolerations(sub.Tolerations)
		}
	}
}

func setCount(mode *resourceapi.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourceapi.DeviceAllocationModeExactCount
	}
	if *mode == resourceapi.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}

func setTolerations(tolerations []resourceapi.DeviceToleration) {
	for i := range tolerations {
		if tolerations[i].Operator == "" {
			tolerations[i].Operator = resourceapi.DeviceTolerationOpEqual
		}
	}
}
