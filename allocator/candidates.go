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

// Candidate is an object that a claim can choose as it chooses devices, although no driver publishes it: a node, for example.
type Candidate interface {
	// Properties returns the attributes and capacities that selectors and expressions read. Their names are fully qualified, or
	// belong to [device.NodeDriver].
	Properties() (map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, map[resourceapi.QualifiedName]resourceapi.DeviceCapacity)
}

// ChooseFrom chooses candidates instead of devices for the only claim of a problem. The slices of the problem are not used. It
// returns the indices of the candidates in the order of the search, or nil if no set of candidates satisfies the claim.
func ChooseFrom[C Candidate](ctx context.Context, p Problem, candidates []C) (chosen []int, details Details, err error) {
	// The search sees the candidates as devices of one pool that all nodes can reach. So the position of a device in the search is
	// the index of the candidate.
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
