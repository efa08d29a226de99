// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Trim removes the fields of an object that no answer depends on. A large cluster has very many pods and nodes, and most of
// their content is about images and heartbeats.
func Trim(object runtime.Object) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	switch object := object.(type) {
	case *corev1.Node:
		object.Status = corev1.NodeStatus{
			Capacity: object.Status.Capacity, Allocatable: object.Status.Allocatable,
			NodeInfo: object.Status.NodeInfo, Features: object.Status.Features, DeclaredFeatures: object.Status.DeclaredFeatures,
		}
	case *corev1.Pod:
		object.Spec.InitContainers, object.Spec.Containers = trimContainers(object.Spec.InitContainers), trimContainers(object.Spec.Containers)
		object.Spec.EphemeralContainers = nil
		status := &object.Status
		status.InitContainerStatuses, status.ContainerStatuses = trimStatuses(status.InitContainerStatuses), trimStatuses(status.ContainerStatuses)
		status.EphemeralContainerStatuses = nil
	}
}

func trimContainers(all []corev1.Container) (kept []corev1.Container) {
	for _, c := range all {
		kept = append(kept, corev1.Container{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy})
	}
	return kept
}

// trimStatuses returns the statuses of containers with resources. Only the fields about resources are set.
func trimStatuses(all []corev1.ContainerStatus) (kept []corev1.ContainerStatus) {
	for _, c := range all {
		if c.AllocatedResources != nil || c.Resources != nil {
			kept = append(kept, corev1.ContainerStatus{Name: c.Name, AllocatedResources: c.AllocatedResources, Resources: c.Resources})
		}
	}
	return kept
}

// OnlyResources returns a copy of a pod with only the fields that determine its resources.
func OnlyResources(pod *corev1.Pod) *corev1.Pod {
	short := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, DeletionTimestamp: pod.DeletionTimestamp},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority, Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
			InitContainers: pod.Spec.InitContainers, Containers: pod.Spec.Containers,
		},
		Status: pod.Status,
	}
	Trim(short)
	return short
}
