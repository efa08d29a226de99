// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/compat"
	"github.com/celset/celset/cel/device"
)

// Problem holds the inputs of an allocation to explain.
type Problem struct {
	allocator.Problem
	// NamesAll is true if the reader of the explanation may read claims of all namespaces. Otherwise, claims outside the
	// namespace of Claims are counted but not named, because users of one namespace may not see objects of another namespace.
	NamesAll bool
	// TaintRules may be empty. It lists DeviceTaintRules that may have added taints to devices in Slices. Messages name them.
	TaintRules []*compat.DeviceTaintRule
	// Environment compiles conditions. If it is nil, all problems of the process share one environment. Otherwise, a constraint
	// with conjuncts that are too long for [Prepare] is a single condition.
	Environment *device.Environment

	// asked is the allocator of Ready, and parts divides the problem by nodes. Both are nil without Ready.
	asked *allocator.Allocator
	parts *parts
}

// Prepare compiles all expressions that an explanation of the claim needs, so that [Problem.Node] finds them in the
// environment. An error is the error of the context, or describes a mistake in the claim.
func Prepare(ctx context.Context, environment *device.Environment, claim *resourceapi.ResourceClaim, classes structured.DeviceClassLister) error {
	p := &Problem{Problem: allocator.Problem{Claims: []*resourceapi.ResourceClaim{claim}, Classes: classes}, Environment: environment}
	p, _, err := p.withDefaults()
	if err != nil {
		return err
	}
	conditions, err := p.conditions(ctx)
	if err != nil {
		return err
	}
	for _, c := range conditions {
		if c.conjuncts == nil {
			continue
		}
		if _, err := environment.Compile(ctx, strings.Join(c.conjuncts, conjunction), c.variables...); err != nil {
			return err
		}
	}
	return nil
}

// maxElsewhere limits the slices for other nodes that an explanation examines if the node has no device for a request.
const maxElsewhere = 128

// cacheBytes limits the cache that the searches of one explanation share.
const cacheBytes = 16 << 20

// onNode returns the part of the problem that concerns a node: pools that may have devices for the node, and claims with
// devices of these pools. If elsewhere is true, it adds up to maxElsewhere slices of pools for other nodes. So the cost does
// not grow with the cluster. The result has a cache of its own, so that explanations don't fill the scheduler's cache.
func (p *Problem) onNode(node *v1.Node, elsewhere bool) (*Problem, error) {
	pools, more := sets.New[pool](), 0
	for _, slice := range p.slicesFor(node) {
		spec := &slice.Spec
		if pools.Has(poolOf(slice)) {
			continue
		}
		isFor := ptr.Deref(spec.PerDeviceNodeSelection, false)
		if !isFor {
			var err error
			if isFor, err = structured.NodeMatches(p.Features, node, ptr.Deref(spec.NodeName, ""), ptr.Deref(spec.AllNodes, false), spec.NodeSelector); err != nil {
				return nil, fmt.Errorf("ResourceSlice %s: node selection: %w", slice.Name, err)
			}
		}
		if !isFor && elsewhere && more < maxElsewhere {
			more, isFor = more+1, true
		}
		if isFor {
			pools.Insert(poolOf(slice))
		}
	}
	return p.with(func(p *Problem) {
		p.Options = append(slices.Clone(p.Options), allocator.WithCache(allocator.NewCache(allocator.CacheBytes(cacheBytes))))
		p.Slices, p.Allocated = p.ofPools(pools)
		p.asked, p.parts = nil, nil // these are for all slices and claims
	}), nil
}

// conjunction is the operator between conjuncts.
const conjunction = " && "

// fits searches a solution for claims on the node while allocated keep their devices. It returns nil if no solution exists.
func (p *Problem) fits(ctx context.Context, node *v1.Node, claims, allocated []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	with := p.Problem
	with.Allocated = allocated
	a, err := with.NewAllocator(ctx)
	if err != nil {
		return nil, err
	}
	results, err := a.Allocate(ctx, node, claims)
	if errors.Is(err, structured.ErrFailedAllocationOnNode) {
		return nil, nil
	}
	return results, err
}

// usedBy returns the allocation results of a claim, without results with admin access, which don't reserve the device.
func usedBy(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	return slices.DeleteFunc(slices.Clone(resultsOf(claim)), func(r resourceapi.DeviceRequestAllocationResult) bool { return ptr.Deref(r.AdminAccess, false) })
}

func resultsOf(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}
