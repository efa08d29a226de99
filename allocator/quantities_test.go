// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/allocator"
)

// LimitQuantities leaves only amounts small enough for arithmetic, and usual amounts unchanged. Otherwise the test would hang.
func TestQuantitiesAreLimited(t *testing.T) {
	of := func(text string) resource.Quantity { return resource.MustParse(text) }
	device := func(name string, amount string) resourceapi.Device {
		return resourceapi.Device{Name: name, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"m": {Value: of(amount)}, "ok": {Value: of("1")}}}
	}
	usual := []string{"0", "1", "-1", "1n", "0.5", "100m", "9223372036854775807", "8Ei", "9E", "1e18", "9e36", "80Gi", "0.000000001"}
	slice := &resourceapi.ResourceSlice{}
	for _, text := range usual {
		slice.Spec.Devices = append(slice.Spec.Devices, device(text, text))
	}
	before := slice.DeepCopy()
	require.Empty(t, allocator.LimitQuantities(slice))
	require.Empty(t, cmp.Diff(before, slice))
	require.Empty(t, allocator.LimitQuantities(&resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Devices: []resourceapi.Device{
		{Name: "zero", Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"m": {}}},
	}}}))

	for _, text := range []string{"1e2000000000", "-1e2000000000", "0e2000000000", "1e2147483647", "1e40", "1e300", "123e38"} {
		slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Devices: []resourceapi.Device{device("d", text)}}}
		require.Equal(t, []string{"capacity m of device d"}, allocator.LimitQuantities(slice), text)
		require.Len(t, slice.Spec.Devices[0].Capacity, 1)
		require.Contains(t, slice.Spec.Devices[0].Capacity, resourceapi.QualifiedName("ok"))
	}

	large := of("1e2000000000")
	for name, change := range map[string]func(*resourceapi.Device){
		"capacity ok of device d": func(d *resourceapi.Device) {
			d.Capacity["ok"] = resourceapi.DeviceCapacity{Value: of("1"), RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: &large}}
		},
		"capacity m of device d": func(d *resourceapi.Device) {
			d.Capacity["m"] = resourceapi.DeviceCapacity{Value: of("1"), RequestPolicy: &resourceapi.CapacityRequestPolicy{ValidValues: []resource.Quantity{of("1"), large}}}
		},
		"capacity ok of device d ": func(d *resourceapi.Device) {
			d.Capacity["ok"] = resourceapi.DeviceCapacity{Value: of("1"), RequestPolicy: &resourceapi.CapacityRequestPolicy{ValidRange: &resourceapi.CapacityRequestPolicyRange{Step: &large}}}
		},
		"device d": func(d *resourceapi.Device) {
			d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{Counters: map[string]resourceapi.Counter{"c": {Value: large}}}}
		},
		"device d ": func(d *resourceapi.Device) {
			d.NodeAllocatableResources = map[v1.ResourceName]resourceapi.NodeAllocatableResource{"cpu": {Mapping: &resourceapi.NodeAllocatableMapping{DeviceMultiplier: &large}}}
		},
		"device d  ": func(d *resourceapi.Device) {
			d.NodeAllocatableResources = map[v1.ResourceName]resourceapi.NodeAllocatableResource{"cpu": {Overhead: &resourceapi.NodeAllocatableOverhead{PerPod: &large}}}
		},
	} {
		d := device("d", "1")
		change(&d)
		slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Devices: []resourceapi.Device{device("a", "1"), d, device("z", "1")}}}
		removed := allocator.LimitQuantities(slice)
		require.Len(t, removed, 1, name)
		require.Contains(t, name, removed[0])
	}

	shared := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{SharedCounters: []resourceapi.CounterSet{
		{Name: "set", Counters: map[string]resourceapi.Counter{"c": {Value: large}, "other": {Value: of("1")}}},
	}}}
	require.Equal(t, []string{"counter c of set"}, allocator.LimitQuantities(shared))
	left := shared.Spec.SharedCounters[0].Counters["c"]
	require.True(t, left.Value.IsZero())

	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
		Requests: []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{
			Capacity: &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"m": of("1")}},
		}}},
	}}}
	require.NoError(t, allocator.CheckQuantities(claim))
	claim.Spec.Devices.Requests[0].Exactly.Capacity.Requests["m"] = large
	require.EqualError(t, allocator.CheckQuantities(claim),
		"claim ns/c, request r: the amount of capacity m is out of range: use at most 38 digits before and after the decimal point")
}
