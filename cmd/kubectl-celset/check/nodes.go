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

// nodes knows the devices of all nodes.
type nodes struct {
	all       []*corev1.Node
	allocator *allocator.Allocator
	devices   map[structured.DeviceID]*resourceapi.Device
	// published is what all devices publish, drivers are those that have devices.
	published published
	drivers   []string
	// largestPool is the number of devices of the largest pool, 0 if none is known.
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

// areKnown tells whether there are nodes with devices.
func (n *nodes) areKnown() bool { return len(n.all) > 0 && len(n.devices) > 0 }

// mostOn is the largest number of candidates of a node.
func mostOn(all []candidates) int {
	most := 0
	for _, on := range all {
		most = max(most, len(on.devices))
	}
	return most
}

// candidates are the devices of one node that match the covered requests.
type candidates struct {
	node string
	// requests are those of the claim, by name.
	requests map[string]allocator.RequestDevices
	// devices match any of the covered ones, free is how many of them nobody has.
	devices []candidate
	free    int
	// unusable is the number of devices that no covered request can have.
	unusable int
}

type candidate struct {
	id     structured.DeviceID
	device *resourceapi.Device
}

// candidates looks at each node, and leaves out those that have nothing for the claim.
func (n *nodes) candidates(ctx context.Context, claim *resourceapi.ResourceClaim, covered coverage) ([]candidates, error) {
	// Which devices match has nothing to do with constraints and preferences.
	claim = claim.DeepCopy()
	claim.Spec.Devices.Constraints, claim.Spec.Devices.Config = nil, nil
	var result []candidates
	for _, node := range n.all {
		requests, err := n.allocator.RequestDevices(ctx, node, []*resourceapi.ResourceClaim{claim})
		if err != nil {
			// A node with more devices than a claim can have is no node without devices.
			if counted, isMore := n.tooMany(ctx, node, claim); isMore {
				requests, err = counted, nil
			}
		}
		if errors.Is(err, structured.ErrFailedAllocationOnNode) {
			// What its pools have is not known.
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

// tooMany looks for the devices of a node as if each request were for one of them. It reports whether requests for all of
// them get more than a claim can have, which keeps the allocator from looking.
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

// collect takes each device once, in the order of their names.
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

// sets counts the sets: for each request the ways to choose as many devices as it wants,
// as if the others wanted none of them.
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
