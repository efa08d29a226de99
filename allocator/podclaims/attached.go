// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package podclaims

import (
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// Attached returns an error if the scheduler has given up waiting until the devices of an allocated claim are attached: a
// device reports a failure, or the time limit has passed. pod is the UID of the pod that wants to use the claim.
//
// Attached checks the devices in order. A device that has not reported hides failures of later devices, as in kube-scheduler.
func (c *Checker) Attached(claim *resourceapi.ResourceClaim, pod types.UID, now time.Time) error {
	if !c.BindingConditions || claim.Status.Allocation == nil {
		return nil
	}
	waits := false
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if len(result.BindingConditions) == 0 {
			continue
		}
		status := statusOf(claim, result)
		if status == nil {
			waits = true
			break
		}
		for _, name := range result.BindingFailureConditions {
			if failed := apimeta.FindStatusCondition(status.Conditions, name); failed != nil && failed.Status == metav1.ConditionTrue {
				return fmt.Errorf("claim %s: %s has the binding failure condition %s (%s: %s): %s",
					klog.KObj(claim), deviceOf(result), name, failed.Reason, failed.Message, remedy(claim, pod))
			}
		}
		for _, name := range result.BindingConditions {
			waits = waits || !apimeta.IsStatusConditionTrue(status.Conditions, name)
		}
		if waits {
			break
		}
	}
	if at := claim.Status.Allocation.AllocationTimestamp; waits && at != nil && at.Add(c.BindingTimeout).Before(now) {
		return fmt.Errorf("claim %s was allocated at %s, but its devices did not get their binding conditions within the bindingTimeout of %s: %s",
			klog.KObj(claim), at.UTC().Format(time.RFC3339), c.BindingTimeout, remedy(claim, pod))
	}
	return nil
}

// remedy returns the part of an error message that says when the claim loses its allocation.
func remedy(claim *resourceapi.ResourceClaim, pod types.UID) string {
	if onlyConsumer(claim, pod) {
		return "the scheduler releases the devices and searches again"
	}
	return "the allocation stays until the other pods that use the claim end"
}

func deviceOf(result *resourceapi.DeviceRequestAllocationResult) string {
	return fmt.Sprintf("device %s/%s/%s", result.Driver, result.Pool, result.Device)
}

// statusOf returns the status that the driver reports for an allocated device, or nil.
func statusOf(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *resourceapi.AllocatedDeviceStatus {
	for i := range claim.Status.Devices {
		status := &claim.Status.Devices[i]
		if status.Driver == result.Driver && status.Pool == result.Pool && status.Device == result.Device {
			return status
		}
	}
	return nil
}
