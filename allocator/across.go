// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device"
)

// NodeClaims holds the claims to allocate on a node.
type NodeClaims struct {
	Node   *v1.Node
	Claims []*resourceapi.ResourceClaim
}

// MaxAcross is the maximum number of allocations that [Allocator.AllocateAcross] tries on all nodes together.
const MaxAcross = 4096

// AllocateAcross allocates claims on several nodes such that all results can be in use at the same time. It returns the results
// for each node, or nil if the claims don't fit. Claims of different nodes compete only for devices that several nodes can
// reach, and for the counters and the capacity of such devices.
//
//  1. It searches each node independently. If only one node can reach each allocated device, it returns these results.
//  2. Otherwise it searches the nodes one after the other. Devices that earlier nodes got count as in use.
//  3. If a node gets no allocation, AllocateAcross goes back to the previous node. It tries the next allocation there with
//     different devices that several nodes can reach.
//
// If several nodes list the same claim, the first node allocates it. The other nodes must be able to use its devices.
func (a *Allocator) AllocateAcross(ctx context.Context, on []NodeClaims) ([][]resourceapi.AllocationResult, error) {
	s := &acrossNodes{ctx: ctx, on: on, claims: map[*resourceapi.ResourceClaim]resourceapi.AllocationResult{}}
	alone, isLocal, err := s.eachAlone(a)
	if err != nil || alone == nil || isLocal {
		return alone, err
	}
	found, err := s.from(a, 0)
	if err != nil || !found {
		return nil, err
	}
	return s.results, nil
}

type acrossNodes struct {
	ctx context.Context
	on  []NodeClaims
	// claims maps each claim allocated in this search to its result. results holds the results of the nodes searched so far.
	claims  map[*resourceapi.ResourceClaim]resourceapi.AllocationResult
	results [][]resourceapi.AllocationResult
	tried   int
}

// eachAlone searches each node independently. isLocal reports whether only one node can reach each device of the results.
func (s *acrossNodes) eachAlone(a *Allocator) (results [][]resourceapi.AllocationResult, isLocal bool, err error) {
	isLocal = true
	seen := map[*resourceapi.ResourceClaim]bool{}
	for _, of := range s.on {
		for _, claim := range of.Claims {
			isLocal = isLocal && !seen[claim]
			seen[claim] = true
		}
		found, err := a.Allocate(s.ctx, of.Node, of.Claims)
		if found == nil || err != nil {
			return nil, false, withoutRefusal(err)
		}
		results = append(results, found)
		isLocal = isLocal && a.AreLocal(of.Node, found)
	}
	return results, isLocal, nil
}

// withoutRefusal returns nil if err only means that the claims don't fit on a node. It returns other errors unchanged.
func withoutRefusal(err error) error {
	if errors.Is(err, structured.ErrFailedAllocationOnNode) {
		return nil
	}
	return err
}

// AreLocal reports whether only the given node can reach the devices of the results.
func (a *Allocator) AreLocal(node *v1.Node, results []resourceapi.AllocationResult) bool {
	has, err := a.planner.InventoryOf(node)
	if err != nil {
		return false
	}
	local := map[structured.DeviceID]bool{}
	for _, c := range has.Candidates {
		local[c.ID] = IsLocal(c.Slice)
	}
	for i := range results {
		for _, r := range results[i].Devices.Results {
			if !local[structured.MakeDeviceID(r.Driver, r.Pool, r.Device)] {
				return false
			}
		}
	}
	return true
}

// IsLocal reports whether only one node can reach the devices of the slice and their counters.
func IsLocal(slice *resourceapi.ResourceSlice) bool { return ptr.Deref(slice.Spec.NodeName, "") != "" }

// from allocates the claims of s.on[node] and later nodes. found is false if the results of earlier nodes prevent that.
func (s *acrossNodes) from(a *Allocator, node int) (found bool, err error) {
	if node == len(s.on) {
		return true, nil
	}
	of := s.on[node]
	pending, usable, err := s.pending(a, of)
	if err != nil || !usable {
		return false, err
	}
	if len(pending) == 0 {
		return s.with(a, node, pending, nil)
	}
	has, err := a.planner.InventoryOf(of.Node)
	if err != nil {
		return false, err
	}
	reachesShared := slices.ContainsFunc(has.Candidates, func(c *inventory.Candidate) bool { return !IsLocal(c.Slice) })
	seen := map[string]bool{}
	var failure error
	err = a.AllocateEach(s.ctx, of.Node, pending, device.ReadSet{}, func(allocation Allocation) bool {
		if shared := sharedBy(allocation.Devices); !seen[shared] {
			seen[shared] = true
			found, failure = s.with(a, node, pending, allocation.Results)
		}
		if s.tried++; !found && failure == nil && s.tried > MaxAcross {
			failure = fmt.Errorf("more than %d allocations were tried for the pods of all nodes together: narrow the devices with selectors in the claims", MaxAcross)
		}
		return !found && failure == nil && reachesShared
	})
	if failure != nil {
		return false, failure
	}
	return found, withoutRefusal(err)
}

// pending returns the unallocated claims of a node. usable is false if the node can't reach the devices of an allocated claim.
func (s *acrossNodes) pending(a *Allocator, of NodeClaims) (pending []*resourceapi.ResourceClaim, usable bool, err error) {
	for _, claim := range of.Claims {
		result, has := s.claims[claim]
		if !has {
			pending = append(pending, claim)
			continue
		}
		if result.NodeSelector == nil {
			continue
		}
		matches, err := structured.NodeMatches(a.planner.Features, of.Node, "", false, result.NodeSelector)
		if err != nil {
			return nil, false, fmt.Errorf("claim %s: %w", klog.KObj(claim), err)
		}
		if !matches {
			return nil, false, nil
		}
	}
	return pending, true, nil
}

// with stores the results of a node and allocates the claims of the later nodes. If that fails, it removes the results.
func (s *acrossNodes) with(a *Allocator, node int, claims []*resourceapi.ResourceClaim, results []resourceapi.AllocationResult) (found bool, err error) {
	for i, claim := range claims {
		s.claims[claim] = results[i]
	}
	all := make([]resourceapi.AllocationResult, len(s.on[node].Claims))
	for i, claim := range s.on[node].Claims {
		all[i] = s.claims[claim]
	}
	s.results = append(s.results, all)
	if found, err = s.from(a.With(results...), node+1); !found {
		s.results = s.results[:node]
		for _, claim := range claims {
			delete(s.claims, claim)
		}
	}
	return found, err
}

// sharedBy returns a key for those devices of an allocation that several nodes can reach.
func sharedBy(devices []AllocatedDevice) string {
	var shared []string
	for _, d := range devices {
		if !IsLocal(d.Slice) {
			shared = append(shared, d.Slice.Spec.Driver+"/"+d.Slice.Spec.Pool.Name+"/"+d.Name)
		}
	}
	slices.Sort(shared)
	return strings.Join(shared, ",")
}
