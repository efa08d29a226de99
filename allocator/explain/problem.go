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

// Problem is an allocation to explain.
type Problem struct {
	allocator.Problem
	// NamesAll is true if the reader of the answer may read the claims of all namespaces. Otherwise claims outside the namespace of
	// Claims are counted but not named, because users of one namespace may not see objects of another.
	NamesAll bool
	// TaintRules may be the origin of taints in Slices, and are named in messages. They are optional.
	TaintRules []*compat.DeviceTaintRule
	// Environment compiles conditions. If it is nil, all problems of the process share one environment. To use only conditions
	// that [Prepare] compiled, set it to the environment of the Options.
	Environment *device.Environment
}

// Prepare compiles all expressions for explaining a claim, so that [Problem.Node] finds them in the environment. An error comes
// from the context or concerns the claim.
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

// maxElsewhere limits the ResourceSlices with node selectors for other nodes that an explanation examines if a node has no device
// for a request.
const maxElsewhere = 128

// cacheBytes limits the memory shared by the searches of one explanation.
const cacheBytes = 16 << 20

// pool is a pool of a driver.
type pool struct{ driver, name string }

// onNode returns the part of the problem that concerns a node: pools with possible devices and the claims with devices of these
// pools. With elsewhere it adds some pools for other nodes. So the cost does not grow with the cluster, and the scheduler's cache
// is not used.
func (p *Problem) onNode(node *v1.Node, elsewhere bool) (*Problem, error) {
	pools, more := sets.New[pool](), 0
	for _, slice := range p.Slices {
		spec := &slice.Spec
		if !mayBeFor(slice, node) || pools.Has(pool{spec.Driver, spec.Pool.Name}) {
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
			pools.Insert(pool{spec.Driver, spec.Pool.Name})
		}
	}
	return p.with(func(p *Problem) {
		p.Options = append(slices.Clone(p.Options), allocator.WithCache(allocator.NewCache(allocator.CacheBytes(cacheBytes))))
		p.Slices = slices.DeleteFunc(slices.Clone(p.Slices), func(slice *resourceapi.ResourceSlice) bool {
			return !pools.Has(pool{slice.Spec.Driver, slice.Spec.Pool.Name})
		})
		p.Allocated = slices.DeleteFunc(slices.Clone(p.Allocated), func(claim *resourceapi.ResourceClaim) bool {
			return !slices.ContainsFunc(resultsOf(claim), func(r resourceapi.DeviceRequestAllocationResult) bool { return pools.Has(pool{r.Driver, r.Pool}) })
		})
	}), nil
}

// conjunction joins conjuncts.
const conjunction = " && "

// fits searches a solution for the claims on the node, beside the allocated claims. It returns nil if no solution exists.
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

// usedBy returns the results of a claim, except results with admin access, which don't reserve a device.
func usedBy(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	return slices.DeleteFunc(slices.Clone(resultsOf(claim)), func(r resourceapi.DeviceRequestAllocationResult) bool { return ptr.Deref(r.AdminAccess, false) })
}

func resultsOf(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}
