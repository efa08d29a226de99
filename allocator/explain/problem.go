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

// Problem is an allocation that is to be explained.
type Problem struct {
	allocator.Problem
	// NamesAll: whoever reads the answer may read the claims of all namespaces. Else those of
	// other namespaces than that of Claims are counted and not named: the users of one
	// namespace have no right to know of the objects in another.
	NamesAll bool
	// TaintRules are those that the taints in Slices may come from, to name them. They may be left out.
	TaintRules []*compat.DeviceTaintRule
	// Environment compiles conditions; nil means one that all problems of the process share. It has to be that
	// of the Options where it is only to look up what [Prepare] has compiled.
	Environment *device.Environment
}

// Prepare compiles what explaining a claim takes, so that [Problem.Node] finds it in the environment. The error
// is that of the context, or about the claim.
func Prepare(ctx context.Context, environment *device.Environment, claim *resourceapi.ResourceClaim, classes structured.DeviceClassLister) error {
	p := &Problem{Problem: allocator.Problem{Claims: []*resourceapi.ResourceClaim{claim}, Classes: classes}, Environment: environment}
	p, _, err := p.writtenOut()
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

// maxElsewhere is how many ResourceSlices that are for other nodes by a node selector are looked at to explain a node that
// has no device for a request.
const maxElsewhere = 128

// cacheBytes is for what the searches of one explanation share.
const cacheBytes = 16 << 20

// pool is one of a driver.
type pool struct{ driver, name string }

// onNode has only what matters on a node: the pools that may have devices for it, with elsewhere some for other nodes, and the
// claims with devices of these. So an explanation costs no more in a large cluster, and the cache of the scheduler stays as it is.
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

// fits looks for a solution for the claims on the node, with the given claims having their
// devices. Results are nil if there is none.
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

// usedBy are the results of a claim but for those with admin access, which keeps no other claim from a device.
func usedBy(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	return slices.DeleteFunc(slices.Clone(resultsOf(claim)), func(r resourceapi.DeviceRequestAllocationResult) bool { return ptr.Deref(r.AdminAccess, false) })
}

func resultsOf(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}
