// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package podclaims

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"
)

func owner(kind, name string) []metav1.OwnerReference {
	of := metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}
	if kind == "PodGroup" {
		of.APIVersion = "scheduling.k8s.io/v1beta1"
	}
	return []metav1.OwnerReference{of}
}

func consumers(n int) (all []resourceapi.ResourceClaimConsumerReference) {
	for i := range n {
		name := fmt.Sprint("c", i)
		all = append(all, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: types.UID(name)})
	}
	return all
}

// TestFind checks which claims the pod p can use.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		name   string
		claim  resourceapi.ResourceClaim
		made   bool // from a template
		absent bool
		edit   func(*v1.Pod)
		err    string
	}{
		{name: "named"},
		{name: "missing", absent: true, err: `resourceclaims.resource.k8s.io "c" not found`},
		{name: "deleted", claim: resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}},
			err: "claim ns/c is being deleted: create the claim again after it is deleted"},
		{name: "deleted and in use", claim: resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}, Status: resourceapi.ResourceClaimStatus{ReservedFor: consumers(2)}},
			err: "claim ns/c is being deleted, but is still in use by 2 consumers in status.reservedFor: create the claim again after it is deleted"},
		{name: "deleted after the pod was bound", claim: resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}},
			edit: func(pod *v1.Pod) { pod.Spec.NodeName = "n" }},
		{name: "own", made: true, claim: resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("Pod", "p")}}},
		{name: "another pod's", made: true, claim: resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("Pod", "other")}},
			err: "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner): the claim was created for Pod other"},
		{name: "nobody's", made: true, err: "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)"},
		{name: "another pod's, by its name", claim: resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("Pod", "other")}}},
		{name: "of the group", made: true, claim: resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodGroup", "g")}},
			edit: func(pod *v1.Pod) { pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("g")} }},
		{name: "255 consumers", claim: resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{ReservedFor: consumers(255)}}},
		{name: "256 consumers", claim: resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{ReservedFor: consumers(256)}},
			err: "claim ns/c has 256 consumers in status.reservedFor, and the API allows no more: wait until one of them ends, or use another claim"},
		{name: "one of 256 consumers", claim: resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{ReservedFor: consumers(256)}}, edit: func(pod *v1.Pod) { pod.UID = "c3" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim := c.claim
			claim.Namespace, claim.Name = "ns", "c"
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}}
			pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "entry", ResourceClaimName: ptr.To("c")}}
			if c.made {
				pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "entry", ResourceClaimTemplateName: ptr.To("t")}}
				pod.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "entry", ResourceClaimName: ptr.To("c")}}
			}
			if c.edit != nil {
				c.edit(pod)
			}
			checker := Checker{WorkloadClaims: true}
			claims, err := checker.Find(pod, func(namespace, name string) (*resourceapi.ResourceClaim, error) {
				require.Equal(t, "ns/c", namespace+"/"+name)
				if c.absent {
					return nil, apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), name)
				}
				return &claim, nil
			})
			if c.err == "" {
				require.NoError(t, err)
				require.Equal(t, []*resourceapi.ResourceClaim{&claim}, claims)
			} else {
				require.EqualError(t, err, c.err)
			}
		})
	}
}

func TestFindWithoutClaims(t *testing.T) {
	var checker Checker
	pod := &v1.Pod{Spec: v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{{Name: "entry", ResourceClaimTemplateName: ptr.To("t")}}}}
	_, err := checker.Find(pod, nil)
	require.ErrorIs(t, err, resourceclaim.ErrClaimNotFound)
	pod.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "entry"}}
	claims, err := checker.Find(pod, nil)
	require.NoError(t, err)
	require.Empty(t, claims, "the entry needs no claim")
}

type classes []string

func (c classes) List() (all []*resourceapi.DeviceClass, err error) {
	for _, name := range c {
		all = append(all, &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return all, nil
}

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, known := range c {
		if name == known {
			return &resourceapi.DeviceClass{}, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

func TestClasses(t *testing.T) {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{
		{Name: "a", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.example.com"}},
		{Name: "b", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "x", DeviceClassName: "gpu.example.com"}, {Name: "y", DeviceClassName: "nic.example.com"}}},
	}
	claims := []*resourceapi.ResourceClaim{claim}
	on, off := Checker{PrioritizedList: true}, Checker{}
	require.NoError(t, on.Classes(claims, classes{"gpu.example.com", "nic.example.com"}))
	require.EqualError(t, off.Classes(claims, classes{"gpu.example.com"}), "claim ns/c, request b: firstAvailable needs the feature gate DRAPrioritizedList, which is off in the scheduler: enable it there")
	require.EqualError(t, on.Classes(claims, classes{"gpu.example.com"}), "claim ns/c, request b/y: device class nic.example.com does not exist")
	require.EqualError(t, on.Classes(claims, classes{"gpus.example.com"}), `claim ns/c, request a: device class gpu.example.com does not exist; did you mean "gpus.example.com"?`)
}

// Attached returns an error if a device is not attached in time or reports a failure.
func TestAttached(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	result := func(device string, conditions ...string) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: device, BindingConditions: conditions, BindingFailureConditions: []string{"failed"}}
	}
	status := func(device, condition string) resourceapi.AllocatedDeviceStatus {
		return resourceapi.AllocatedDeviceStatus{Driver: "d", Pool: "p", Device: device, Conditions: []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "R", Message: "m"}}}
	}
	const again = ": the scheduler releases the devices and searches again"
	for _, c := range []struct {
		name     string
		age      time.Duration
		results  []resourceapi.DeviceRequestAllocationResult
		statuses []resourceapi.AllocatedDeviceStatus
		reserved int
		err      string
	}{
		{name: "no conditions", age: time.Hour, results: []resourceapi.DeviceRequestAllocationResult{result("a")}},
		{name: "waiting", age: time.Minute, results: []resourceapi.DeviceRequestAllocationResult{result("a", "ready")}},
		{name: "attached", age: time.Hour, results: []resourceapi.DeviceRequestAllocationResult{result("a", "ready")}, statuses: []resourceapi.AllocatedDeviceStatus{status("a", "ready")}},
		{name: "late", age: time.Hour, results: []resourceapi.DeviceRequestAllocationResult{result("a", "ready")},
			err: "claim ns/c was allocated at 2026-01-02T02:04:05Z, but its devices did not get their binding conditions within the bindingTimeout of 10m0s" + again},
		{name: "late, another condition", age: time.Hour, results: []resourceapi.DeviceRequestAllocationResult{result("a", "ready", "more")}, statuses: []resourceapi.AllocatedDeviceStatus{status("a", "ready")},
			err: "claim ns/c was allocated at 2026-01-02T02:04:05Z, but its devices did not get their binding conditions within the bindingTimeout of 10m0s" + again},
		{name: "failed", results: []resourceapi.DeviceRequestAllocationResult{result("a", "ready")}, statuses: []resourceapi.AllocatedDeviceStatus{status("a", "failed")},
			err: "claim ns/c: device d/p/a has the binding failure condition failed (R: m)" + again},
		{name: "failed in use", reserved: 2, results: []resourceapi.DeviceRequestAllocationResult{result("a", "ready")}, statuses: []resourceapi.AllocatedDeviceStatus{status("a", "failed")},
			err: "claim ns/c: device d/p/a has the binding failure condition failed (R: m): the allocation stays until the other pods that use the claim end"},
		{name: "a failure behind a silent device", results: []resourceapi.DeviceRequestAllocationResult{result("a", "ready"), result("b", "ready")}, statuses: []resourceapi.AllocatedDeviceStatus{status("b", "failed")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
			claim.Status = resourceapi.ResourceClaimStatus{
				Allocation: &resourceapi.AllocationResult{AllocationTimestamp: ptr.To(metav1.NewTime(now.Add(-c.age))), Devices: resourceapi.DeviceAllocationResult{Results: c.results}},
				Devices:    c.statuses, ReservedFor: consumers(c.reserved),
			}
			on, off := Checker{BindingConditions: true, BindingTimeout: 10 * time.Minute}, Checker{BindingTimeout: 10 * time.Minute}
			require.NoError(t, off.Attached(claim, "p", now))
			if err := on.Attached(claim, "p", now); c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
		})
	}
}
