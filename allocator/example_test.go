// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/allocator"
)

// ringClaim requests four devices with contiguous indices.
const ringClaim = `
metadata: {namespace: default, name: four-connected-devices}
spec:
  devices:
    requests:
    - name: mla
      exactly: {deviceClassName: mla.example.com, allocationMode: ExactCount, count: 4}
    constraints:
    - requests: [mla]
      matchAttribute: celset.dev/ring4
    config:
    - opaque:
        driver: celset.dev
        parameters:
          apiVersion: celset.dev/v1alpha1
          kind: CELDeviceConstraint
          name: ring4
          expression: |
            devices.map(d, d.attributes['mla.example.com'].index).max() -
            devices.map(d, d.attributes['mla.example.com'].index).min() == 3
`

// oneClass is a class lister for a cluster with one device class.
type oneClass struct{ *resourceapi.DeviceClass }

func (c oneClass) Get(string) (*resourceapi.DeviceClass, error) { return c.DeviceClass, nil }

func (c oneClass) List() ([]*resourceapi.DeviceClass, error) {
	return []*resourceapi.DeviceClass{c.DeviceClass}, nil
}

// A node has a ring of eight accelerators. The second accelerator is in use.
func Example() {
	ring := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "ring"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   "mla.example.com",
			NodeName: ptr.To("node-1"),
			Pool:     resourceapi.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range int64(8) {
		ring.Spec.Devices = append(ring.Spec.Devices, resourceapi.Device{
			Name:       fmt.Sprintf("mla-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: &i}},
		})
	}
	inUse := structured.AllocatedState{
		AllocatedDevices: sets.New(structured.MakeDeviceID("mla.example.com", "node-1", "mla-1")),
	}
	var claim resourceapi.ResourceClaim
	if err := yaml.UnmarshalStrict([]byte(ringClaim), &claim); err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	class := oneClass{&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "mla.example.com"}}}
	a, err := allocator.NewAllocator(ctx, structured.Features{}, inUse, class, []*resourceapi.ResourceSlice{ring},
		dracel.NewCache(10, dracel.Features{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	results, err := a.Allocate(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, []*resourceapi.ResourceClaim{&claim})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, device := range results[0].Devices.Results {
		fmt.Println(device.Device)
	}
	fmt.Println(a.Stats().Evaluations, "sets evaluated,", a.Stats().SetsProven, "proven")
	// Output:
	// mla-2
	// mla-3
	// mla-4
	// mla-5
	// 0 sets evaluated, 1 proven
}

// A scheduler or autoscaler that creates an allocator for each attempt replaces one line. All uses stay the same.
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
