// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
)

// A scheduler or autoscaler that has an allocator made for each attempt replaces
// one line. What it does with the allocator stays as it is.
func ExampleNewAllocator() {
	ctx := context.Background()
	var (
		features = structured.Features{PrioritizedList: true}
		state    = structured.AllocatedState{}
		classes  = oneClass{&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "mla.example.com"}}}
		slices   = []*resourceapi.ResourceSlice{{Spec: resourceapi.ResourceSliceSpec{
			Driver:   "mla.example.com",
			NodeName: ptr.To("node-1"),
			Pool:     resourceapi.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 1},
			Devices:  []resourceapi.Device{{Name: "mla-0"}},
		}}}
		celCache = dracel.NewCache(10, dracel.Features{})
	)

	schedule := func(a structured.Allocator) {
		claim := &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "any", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: "mla.example.com", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
			}}},
		}}}
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
		results, err := a.Allocate(ctx, node, []*resourceapi.ResourceClaim{claim})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(results[0].Devices.Results[0].Device)
	}

	theirs, err := structured.NewAllocator(ctx, features, state, classes, slices, celCache)
	if err != nil {
		fmt.Println(err)
		return
	}
	schedule(theirs)

	ours, err := allocator.NewAllocator(ctx, features, state, classes, slices, celCache)
	if err != nil {
		fmt.Println(err)
		return
	}
	schedule(ours)
	// Output:
	// mla-0
	// mla-0
}
