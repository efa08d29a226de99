// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Occupant returns a pod that runs on the node in the profile of kube-scheduler, and its claim for exactly these devices. Pod
// and claim have the given name. The error comes from [topology.Topology.Select].
func (s *Story) Occupant(name, node string, devices ...string) (*resourceapi.ResourceClaim, *corev1.Pod, error) {
	selected, err := s.Topology.Select(devices)
	if err != nil {
		return nil, nil, err
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, d := range selected {
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{
			Name: d.Name,
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: d.Driver,
				AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
				Count:           1,
				Selectors:       []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: d.Selector()}}},
			},
		})
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName:  corev1.DefaultSchedulerName,
			NodeSelector:   map[string]string{corev1.LabelHostname: node},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &claim.Name}},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "devices"}}},
			}},
		},
	}
	return claim, pod, nil
}
