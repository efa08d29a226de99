// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
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
	TaintRules []*resourceapi.DeviceTaintRule
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

func resultsOf(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}
