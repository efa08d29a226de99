// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel/device"
)

// Candidate is an object that a claim can select like a device although no driver publishes it, for example a node.
type Candidate interface {
	// Properties returns the attributes and capacities that selectors and expressions read. Their names are fully qualified, or
	// belong to [device.NodeDriver].
	Properties() (map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, map[resourceapi.QualifiedName]resourceapi.DeviceCapacity)
}

// ChooseFrom chooses from candidates instead of devices, for a problem with a single claim. It ignores the slices of the
// problem. It returns the indices of the chosen candidates in the order of the search, or nil if no set satisfies the claim.
func ChooseFrom[C Candidate](ctx context.Context, p Problem, candidates []C) (chosen []int, details Details, err error) {
	// The search treats the candidates as devices of one pool that all nodes can reach. The position of a device in the search
	// is then the index of its candidate.
	pool := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
		Driver: device.NodeDriver, Pool: resourceapi.ResourcePool{Name: device.NodeDriver, ResourceSliceCount: 1}, AllNodes: ptr.To(true),
		Devices: make([]resourceapi.Device, len(candidates)),
	}}
	pool.Name = device.NodeDriver
	for i, c := range candidates {
		d := &pool.Spec.Devices[i]
		d.Name = strconv.Itoa(i)
		d.Attributes, d.Capacity = c.Properties()
	}
	p.Slices = []*resourceapi.ResourceSlice{pool}
	a, err := p.NewAllocator(ctx)
	if err != nil {
		return nil, details, err
	}
	search, results, details, err := a.allocate(ctx, &v1.Node{}, p.Claims)
	if results != nil {
		chosen = search.Chosen()
	}
	return chosen, details, err
}
