// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/search"
)

// RequestDevices lists the devices of a node for one request, as if there were no other requests and constraints.
type RequestDevices = search.RequestDevices

// RequestDevices examines all devices of the node for each request, in order. It fails with the errors of [Allocator.Allocate].
func (a *Allocator) RequestDevices(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]RequestDevices, error) {
	on, err := a.planner.PlanFor(claims).On(node)
	if err != nil {
		return nil, err
	}
	s, err := search.New(ctx, on, nil)
	if err != nil {
		return nil, err
	}
	return s.RequestDevices()
}

// NodeDevices returns the devices that claims can get on the node, in the order of the search.
func (a *Allocator) NodeDevices(node *v1.Node) ([]structured.DeviceID, error) {
	has, err := a.planner.InventoryOf(node)
	if err != nil {
		return nil, err
	}
	ids := make([]structured.DeviceID, 0, len(has.Candidates))
	for _, c := range has.Candidates {
		isFor, err := c.IsFor(a.planner.Features, node)
		if err != nil {
			return nil, err
		}
		if isFor {
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

// HasPlainDevices reports whether each device of a node is allocated as a whole and independently of other devices. For that,
// the slices must have only devices with attributes and capacities, and the pools must be complete and valid.
func (a *Allocator) HasPlainDevices(node *v1.Node) bool {
	has, err := a.planner.InventoryOf(node)
	return err == nil && has.IsPlain
}

// BrokenPool describes an incomplete or invalid pool of a node. The allocator uses no device of such a pool.
type BrokenPool struct {
	Driver, Name string
	Generation   int64
	// Published is the number of slices with the pool's latest generation.
	Published int
	// Invalid is the reason why the pool is invalid. It is empty if the pool is incomplete because slices are missing.
	Invalid string
}

// BrokenPools returns the incomplete and invalid pools of a node, sorted by driver and name. It returns nil if a node selector
// of a slice can't be evaluated, because [Allocator.Allocate] returns that error.
func BrokenPools(features structured.Features, node *v1.Node, all []*resourceapi.ResourceSlice) []BrokenPool {
	pools, _, err := inventory.Gather(features, node, all, all)
	if err != nil {
		return nil
	}
	var broken []BrokenPool
	for _, p := range pools {
		if !p.Incomplete && p.Invalid == "" {
			continue
		}
		b := BrokenPool{Driver: p.Driver, Name: p.Name, Invalid: p.Invalid}
		for _, slice := range all {
			switch pool := &slice.Spec.Pool; {
			case slice.Spec.Driver != p.Driver || pool.Name != p.Name || pool.Generation < b.Generation:
			case pool.Generation > b.Generation:
				b.Generation, b.Published = pool.Generation, 1
			default:
				b.Published++
			}
		}
		broken = append(broken, b)
	}
	return broken
}
