// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// All claims of a pod must be on one node, and pods may share claims. So claims connected by pods are moved as a group.

// group is a set of claims that must be on the same node.
type group struct {
	claims []*resourceapi.ResourceClaim
	// devices lists the devices that the claims have, except devices with admin access.
	devices []structured.DeviceID
	// pinned is true if packing must not move the group.
	pinned bool
}

// poolNodes maps pools to nodes. A pool that several nodes can use maps to "".
type poolNodes struct {
	nodes map[poolID]string
	// devices maps a node to the number of its own devices. everywhere is the number of devices that several nodes can use.
	devices    map[string]int
	everywhere int
}

type poolID struct{ driver, pool string }

// poolNodesOf returns the node of each pool, and counts the devices. It leaves out pools of nodes that are not in nodes.
func poolNodesOf(slices []*resourceapi.ResourceSlice, nodes []*v1.Node) poolNodes {
	p := poolNodes{nodes: map[poolID]string{}, devices: map[string]int{}}
	known := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		known[node.Name] = true
	}
	for _, slice := range slices {
		name := ptr.Deref(slice.Spec.NodeName, "")
		switch {
		case name == "":
			p.everywhere += len(slice.Spec.Devices)
		case !known[name]:
			continue
		default:
			p.devices[name] += len(slice.Spec.Devices)
		}
		p.nodes[poolID{slice.Spec.Driver, slice.Spec.Pool.Name}] = name
	}
	return p
}

func poolOf(id structured.DeviceID) poolID { return poolID{id.Driver.String(), id.Pool.String()} }

// groupsOf returns the groups of claims with devices, largest first. It pins a group if stays returns true for a claim in it.
func (c *cluster) groupsOf(stays func(*resourceapi.ResourceClaim) bool) []*group {
	var claims []*resourceapi.ResourceClaim
	for _, claim := range c.problem.Allocated {
		if len(devicesOf(claim)) > 0 {
			claims = append(claims, claim)
		}
	}
	var groups []*group
	byFirst := map[int]*group{}
	firsts := togetherWith(claims)
	for i, claim := range claims {
		g := byFirst[firsts(i)]
		if g == nil {
			g = &group{}
			groups, byFirst[firsts(i)] = append(groups, g), g
		}
		g.claims = append(g.claims, claim)
		g.devices = append(g.devices, devicesOf(claim)...)
	}
	for _, g := range groups {
		slices.SortFunc(g.claims, func(a, b *resourceapi.ResourceClaim) int { return cmp.Compare(nameOf(a), nameOf(b)) })
		g.pinned = slices.ContainsFunc(g.devices, func(id structured.DeviceID) bool {
			_, known := c.places.nodes[poolOf(id)]
			return !known
		}) || stays != nil && slices.ContainsFunc(g.claims, stays)
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(b.devices), len(a.devices)), cmp.Compare(nameOf(a.claims[0]), nameOf(b.claims[0])))
	})
	return groups
}

// togetherWith returns a function that maps the index of a claim to the index of one claim that represents the group.
func togetherWith(claims []*resourceapi.ResourceClaim) func(claim int) int {
	parents := make([]int, len(claims))
	find := func(i int) int {
		for parents[i] != i {
			parents[i] = parents[parents[i]]
			i = parents[i]
		}
		return i
	}
	ofPod := map[string]int{}
	for i, claim := range claims {
		parents[i] = i
		for _, consumer := range claim.Status.ReservedFor {
			pod := podOf(claim, consumer)
			if other, known := ofPod[pod]; known {
				parents[find(i)] = find(other)
			}
			ofPod[pod] = i
		}
	}
	return find
}

// podOf returns the name of a claim's consumer. For a consumer that is not a pod, it includes the resource.
func podOf(claim *resourceapi.ResourceClaim, consumer resourceapi.ResourceClaimConsumerReference) string {
	if consumer.Resource != "pods" {
		return consumer.Resource + " " + claim.Namespace + "/" + consumer.Name
	}
	return claim.Namespace + "/" + consumer.Name
}

// with returns a copy of the group whose claims have the devices in results.
func (g *group) with(results []resourceapi.AllocationResult) *group {
	moved := &group{}
	for i, claim := range g.claims {
		placed := *claim
		placed.Status.Allocation = &results[i]
		moved.claims = append(moved.claims, &placed)
		moved.devices = append(moved.devices, devicesOf(&placed)...)
	}
	return moved
}

// needs returns a lower bound of the number of devices that the group needs.
func (g *group) needs() int {
	needs := 0
	for _, claim := range g.claims {
		for _, request := range claim.Spec.Devices.Requests {
			exactly := request.Exactly
			if exactly != nil && exactly.AllocationMode == resourceapi.DeviceAllocationModeExactCount && !ptr.Deref(exactly.AdminAccess, false) {
				needs += int(min(exactly.Count, resourceapi.AllocationResultsMaxSize))
			}
		}
	}
	return needs
}

// devicesOf returns the devices of a claim, except devices with admin access.
func devicesOf(claim *resourceapi.ResourceClaim) []structured.DeviceID {
	if claim.Status.Allocation == nil {
		return nil
	}
	var devices []structured.DeviceID
	for _, result := range claim.Status.Allocation.Devices.Results {
		if !ptr.Deref(result.AdminAccess, false) {
			devices = append(devices, structured.MakeDeviceID(result.Driver, result.Pool, result.Device))
		}
	}
	return devices
}

func nameOf(claim *resourceapi.ResourceClaim) string { return klog.KObj(claim).String() }

// claimsOf returns the claims of groups.
func claimsOf(groups []*group) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for _, g := range groups {
		claims = append(claims, g.claims...)
	}
	return claims
}
