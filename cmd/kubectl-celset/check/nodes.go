// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/clusterstate"
)

// nodes holds the nodes and their devices.
type nodes struct {
	all       []*corev1.Node
	allocator *allocator.Allocator
	devices   map[structured.DeviceID]*resourceapi.Device
	// published holds the attributes of all devices. drivers holds the drivers that have devices.
	published published
	drivers   []string
	// largestPool is the number of devices of the largest pool, or 0 if there is no pool.
	largestPool int
}

func newNodes(ctx context.Context, state *clusterstate.State, features structured.Features) (*nodes, error) {
	n := &nodes{all: state.Nodes(), devices: make(map[structured.DeviceID]*resourceapi.Device), published: published{}}
	problem := state.Problem(nil, features)
	pools := map[[2]string]int{}
	for _, slice := range problem.Slices {
		if !slices.Contains(n.drivers, slice.Spec.Driver) {
			n.drivers = append(n.drivers, slice.Spec.Driver)
		}
		pool := [2]string{slice.Spec.Driver, slice.Spec.Pool.Name}
		pools[pool] += len(slice.Spec.Devices)
		n.largestPool = max(n.largestPool, pools[pool])
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			n.published.add(slice.Spec.Driver, d)
			n.devices[structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name)] = d
		}
	}
	var err error
	n.allocator, err = problem.NewAllocator(ctx)
	return n, err
}

// areKnown reports whether there are nodes with devices.
func (n *nodes) areKnown() bool { return len(n.all) > 0 && len(n.devices) > 0 }

// mostOn returns the largest number of candidates on a node.
func mostOn(all []candidates) int {
	most := 0
	for _, on := range all {
		most = max(most, len(on.devices))
	}
	return most
}

// candidates holds the devices of one node that match a request that the constraint covers.
type candidates struct {
	node string
	// requests maps the name of each request of the claim to the devices that match it.
	requests map[string]allocator.RequestDevices
	// devices lists each device that matches at least one covered request once. free is the number of these devices that are
	// not in use.
	devices []candidate
	free    int
	// unusable is the number of matching devices that can't be allocated for any covered request.
	unusable int
}

type candidate struct {
	id     structured.DeviceID
	device *resourceapi.Device
}

// candidates returns the candidates on each node. Nodes without candidates are left out.
func (n *nodes) candidates(ctx context.Context, claim *resourceapi.ResourceClaim, covered coverage) ([]candidates, error) {
	// Whether a device matches does not depend on constraints and preferences. Removing them avoids their errors.
	claim = claim.DeepCopy()
	claim.Spec.Devices.Constraints, claim.Spec.Devices.Config = nil, nil
	var result []candidates
	for _, node := range n.all {
		requests, err := n.allocator.RequestDevices(ctx, node, []*resourceapi.ResourceClaim{claim})
		if err != nil {
			// RequestDevices fails for a node with more devices than a claim may have. tooMany counts such a node's devices in
			// another way.
			if counted, isMore := n.tooMany(ctx, node, claim); isMore {
				requests, err = counted, nil
			}
		}
		if errors.Is(err, structured.ErrFailedAllocationOnNode) {
			// The node is skipped: its devices are unknown, because the slices of a pool are incomplete.
			continue
		}
		if err != nil {
			return nil, err
		}
		on := newCandidates(node.Name, requests)
		n.collect(&on, covered)
		if len(on.devices) > 0 {
			result = append(result, on)
		}
	}
	return result, nil
}

// tooMany lists the devices that match each request on a node where RequestDevices fails. It replaces the count of each request
// by one. It reports whether a request with allocationMode All would get more devices than a claim may have.
func (n *nodes) tooMany(ctx context.Context, node *corev1.Node, claim *resourceapi.ResourceClaim) ([]allocator.RequestDevices, bool) {
	all := coveredRequests(&claim.Spec.Devices, nil)
	if !all.dependsOnNodes() {
		return nil, false
	}
	one := claim.DeepCopy()
	for i := range one.Spec.Devices.Requests {
		request := &one.Spec.Devices.Requests[i]
		if request.Exactly != nil {
			request.Exactly.AllocationMode, request.Exactly.Count = resourceapi.DeviceAllocationModeExactCount, 1
		}
		for k := range request.FirstAvailable {
			request.FirstAvailable[k].AllocationMode, request.FirstAvailable[k].Count = resourceapi.DeviceAllocationModeExactCount, 1
		}
	}
	requests, err := n.allocator.RequestDevices(ctx, node, []*resourceapi.ResourceClaim{one})
	if err != nil {
		return nil, false
	}
	on := newCandidates(node.Name, requests)
	return requests, all.least(&on) > resourceapi.AllocationResultsMaxSize
}

func newCandidates(node string, requests []allocator.RequestDevices) candidates {
	on := candidates{node: node, requests: make(map[string]allocator.RequestDevices, len(requests))}
	for _, request := range requests {
		on.requests[request.Request] = request
	}
	return on
}

// collect sets the devices of all covered requests, without duplicates and sorted by name.
func (n *nodes) collect(on *candidates, covered coverage) {
	matching, free, unusable := make(map[structured.DeviceID]bool), make(map[structured.DeviceID]bool), make(map[structured.DeviceID]bool)
	for _, request := range covered {
		for _, alternative := range request.alternatives {
			for _, id := range on.requests[alternative.name].Matching {
				matching[id] = true
			}
			for _, id := range on.requests[alternative.name].Free {
				free[id] = true
			}
			for _, id := range on.requests[alternative.name].Unusable {
				unusable[id] = true
			}
		}
	}
	maps.DeleteFunc(unusable, func(id structured.DeviceID, _ bool) bool { return matching[id] })
	on.free, on.unusable = len(free), len(unusable)
	for id := range matching {
		on.devices = append(on.devices, candidate{id: id, device: n.devices[id]})
	}
	slices.SortFunc(on.devices, func(a, b candidate) int { return cmp.Compare(a.id.String(), b.id.String()) })
}

// sets estimates the number of sets on the node: the product of the choices of all covered requests. It ignores that two
// requests can't get the same device.
func (on *candidates) sets(covered coverage) NodeSets {
	return NodeSets{
		Node: on.node, Candidates: len(on.devices), Free: on.free, Unusable: on.unusable,
		Sets:     on.product(covered, func(r allocator.RequestDevices) int { return len(r.Matching) }),
		FreeSets: on.product(covered, func(r allocator.RequestDevices) int { return len(r.Free) }),
	}
}

func (on *candidates) product(covered coverage, available func(allocator.RequestDevices) int) *big.Int {
	product := big.NewInt(1)
	if covered.least(on) > resourceapi.AllocationResultsMaxSize {
		return product.SetInt64(0)
	}
	for _, request := range covered {
		ways := new(big.Int)
		if request.optional {
			ways.SetInt64(1)
		}
		for _, alternative := range request.alternatives {
			devices := on.requests[alternative.name]
			wanted := alternative.count
			if alternative.all {
				wanted = len(devices.Matching)
			}
			if n := available(devices); wanted > 0 && wanted <= resourceapi.AllocationResultsMaxSize && n >= wanted {
				ways.Add(ways, new(big.Int).Binomial(int64(n), int64(wanted)))
			}
		}
		product.Mul(product, ways)
	}
	return product
}
