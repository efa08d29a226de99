// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	pollPeriod = 50 * time.Millisecond
	patience   = time.Minute
)

// waitRunning waits until the pod runs and returns it.
func (d *demo) waitRunning(ctx context.Context, name string) (*corev1.Pod, error) {
	var pod *corev1.Pod
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		pod, err = d.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning, err
	})
	if err != nil {
		return nil, fmt.Errorf("pod %s does not run: %w (%s)", name, err, whyUnscheduled(pod))
	}
	return pod, nil
}

func whyUnscheduled(pod *corev1.Pod) string {
	if pod != nil {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				return string(condition.Status) + ": " + condition.Message
			}
		}
	}
	return "not yet seen by a scheduler"
}

// waitUnschedulable waits for the event that says why a pod is not scheduled and
// returns its text.
func (d *demo) waitUnschedulable(ctx context.Context, pod string) (string, error) {
	var text string
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		events, err := d.client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.Set{"regarding.name": pod, "reason": "FailedScheduling"}.String(),
		})
		if err != nil {
			return false, err
		}
		for _, event := range events.Items {
			text = event.Note
		}
		// Before the claim is made from its template, the scheduler says so.
		claim, err := d.claimOf(ctx, pod)
		return err == nil && claim != nil && text != "" && !waitsForClaim(text), err
	})
	if err != nil {
		return "", fmt.Errorf("pod %s: no event says why it is not scheduled: %w (last: %q)", pod, err, text)
	}
	return text, nil
}

// claimOf returns the claim of the pod, nil if it was not made yet.
func (d *demo) claimOf(ctx context.Context, podName string) (*resourceapi.ResourceClaim, error) {
	pod, err := d.client.CoreV1().Pods(namespace).Get(ctx, podName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	name := pod.Spec.ResourceClaims[0].ResourceClaimName
	for _, status := range pod.Status.ResourceClaimStatuses {
		name = status.ResourceClaimName
	}
	if name == nil {
		return nil, nil
	}
	return d.client.ResourceV1().ResourceClaims(namespace).Get(ctx, *name, metav1.GetOptions{})
}

// devicesOf returns the devices that the pod's claim was allocated.
func (d *demo) devicesOf(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	claim, err := d.claimOf(ctx, pod.Name)
	if err != nil {
		return nil, err
	}
	if claim == nil || claim.Status.Allocation == nil {
		return nil, fmt.Errorf("the claim of the running pod %s has no allocation", pod.Name)
	}
	var devices []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		devices = append(devices, result.Device)
	}
	return devices, nil
}

// hasNothing checks that no device was allocated for the pod and it has no node.
func (d *demo) hasNothing(ctx context.Context, name string) error {
	pod, err := d.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	claim, err := d.claimOf(ctx, name)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != "" || claim.Status.Allocation != nil {
		return fmt.Errorf("pod %s should wait without devices, but it is on node %q with allocation %v",
			name, pod.Spec.NodeName, claim.Status.Allocation)
	}
	return nil
}

// noDeviceTwice checks all allocations in the cluster against each other.
func (d *demo) noDeviceTwice(ctx context.Context) error {
	claims, err := d.client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	owner := map[string]string{}
	for _, claim := range claims.Items {
		for _, result := range results(&claim) {
			device := result.Driver + "/" + result.Pool + "/" + result.Device
			if other, taken := owner[device]; taken {
				return fmt.Errorf("device %s is allocated to claim %s and to claim %s", device, other, claim.Name)
			}
			owner[device] = claim.Name
		}
	}
	d.say("%d devices are allocated, none of them twice. All of the above was read back from the", len(owner))
	d.say("API server and checked.")
	return nil
}

func results(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}
