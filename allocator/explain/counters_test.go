// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
)

// card returns the slices of a GPU with partitions. A partition of n sevenths consumes memory slices and multiprocessors.
func card() []*resourceapi.ResourceSlice {
	counters := func(multiprocessors, first, slices int) map[string]resourceapi.Counter {
		all := map[string]resourceapi.Counter{"multiprocessors": {Value: *resource.NewQuantity(int64(multiprocessors), resource.DecimalSI)}}
		for i := first; i < first+slices; i++ {
			all[fmt.Sprintf("memory-slice-%d", i)] = resourceapi.Counter{Value: resource.MustParse("1")}
		}
		return all
	}
	spec := func(name string) *resourceapi.ResourceSlice {
		s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: new("n1"), Pool: resourceapi.ResourcePool{Name: "n1", Generation: 1, ResourceSliceCount: 2},
		}}
		return s
	}
	sets, devices := spec("counters"), spec("devices")
	sets.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "gpu-0", Counters: counters(98, 0, 8)}}
	add := func(sevenths, slices int, at ...int) {
		for _, first := range at {
			devices.Spec.Devices = append(devices.Spec.Devices, resourceapi.Device{
				Name:             fmt.Sprintf("%dg-%d", sevenths, first),
				Attributes:       map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"profile": {StringValue: new(fmt.Sprintf("%dg", sevenths))}},
				ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: "gpu-0", Counters: counters(14*sevenths, first, slices)}},
			})
		}
	}
	add(1, 1, 0, 1, 2, 3, 4, 5, 6)
	add(2, 2, 0, 2, 4)
	add(3, 4, 0, 4)
	add(7, 8, 0)
	return []*resourceapi.ResourceSlice{sets, devices}
}

// TestCountersThatAreUsed checks that the message names only counters that other claims use up. It must not name counters that
// the claim itself would need twice, for devices that never fit together.
func TestCountersThatAreUsed(t *testing.T) {
	for name, test := range map[string]struct {
		wants map[string]int64
		held  []string
		named []string
	}{
		"two of two sevenths and three of one": {map[string]int64{"2g": 2, "1g": 3}, []string{"1g-6"}, []string{"memory-slice-6", "multiprocessors"}},
		"one of a seventh and one of three":    {map[string]int64{"1g": 1, "3g": 1}, []string{"3g-4", "1g-2"}, []string{"memory-slice-2"}},
		"the whole":                            {map[string]int64{"7g": 1}, []string{"1g-3"}, []string{"memory-slice-3", "multiprocessors"}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "c"}}
			for _, profile := range []string{"1g", "2g", "3g", "7g"} {
				if test.wants[profile] > 0 {
					claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{Name: "r" + profile, Exactly: &resourceapi.ExactDeviceRequest{
						DeviceClassName: "card", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: test.wants[profile],
						Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.attributes['gpu.example.com'].profile == %q", profile)}}},
					}})
				}
			}
			p := explain.Problem{Problem: allocator.Problem{
				Claims: []*resourceapi.ResourceClaim{claim}, Classes: classes{"card": {ObjectMeta: metav1.ObjectMeta{Name: "card"}}}, Slices: card(), Selectors: dracel.NewCache(100, dracel.Features{}),
				Features: structured.Features{PartitionableDevices: true},
			}, NamesAll: true}
			for _, device := range test.held {
				held := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: device, UID: types.UID(device)}}
				held.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
					{Request: "r", Driver: "gpu.example.com", Pool: "n1", Device: device},
				}}}
				p.Allocated = append(p.Allocated, held)
			}
			e, err := p.Node(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
			require.NoError(t, err)
			require.False(t, e.Fits)
			for _, counter := range test.named {
				require.Contains(t, e.String(), "counter "+counter+" ")
			}
			require.NotContains(t, e.String(), "counter memory-slice-0 ")
			require.NotEmpty(t, e.InTheWay)
		})
	}
}
