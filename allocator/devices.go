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

// RequestDevices are the devices that a node has for a request, whatever other requests and constraints want.
type RequestDevices = search.RequestDevices

// RequestDevices looks at all devices of the node for each request of the claims, in their
// order. The error is one that [Allocator.Allocate] would return too.
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

// NodeDevices are the devices that claims can have on the node, in the order in which they
// are tried.
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

// HasPlainDevices reports whether the slices of a node say nothing about its devices but their attributes
// and capacities, and its pools can be used. Such a device is in use as a whole or not at all, whatever
// is in use beside it.
func (a *Allocator) HasPlainDevices(node *v1.Node) bool {
	has, err := a.planner.InventoryOf(node)
	return err == nil && has.IsPlain
}

// BrokenPool is a pool of a node that can't be used: it has no devices for the allocator.
type BrokenPool struct {
	Driver, Name string
	Generation   int64
	// Published is how many slices of the generation there are.
	Published int
	// Invalid says what is wrong with the pool. If it is empty slices are missing.
	Invalid string
}

// BrokenPools are those of a node, by driver and name. Node selection that fails is left to [Allocator.Allocate], which
// returns the error.
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
