// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator"
)

// Node calls Ask, and then Explain if the claims don't fit. If it returns an error, the explanation is incomplete.
func (p *Problem) Node(ctx context.Context, node *v1.Node) (*Explanation, error) {
	e, err := p.Ask(ctx, node)
	if err != nil {
		return e, err
	}
	return e, p.Explain(ctx, node, e)
}

// Explain adds the obstacles to an explanation by Ask. If it returns an error, it has added the obstacles found so far.
func (p *Problem) Explain(ctx context.Context, node *v1.Node, e *Explanation) error {
	if e.Fits || e.Failed {
		return nil
	}
	return p.feasible().explain(ctx, node, e)
}

// Ready prepares calls of Ask and Explain for several nodes: it makes the allocator of Ask, and divides slices and allocated
// claims by nodes for Explain. Neither depends on the node or on Claims, so they are made once for all nodes. After Ready, only
// Claims may change. Without Ready, each call of Ask makes an allocator, and each call of Explain reads all slices and claims.
func (p *Problem) Ready(ctx context.Context) (err error) {
	if p.asked, err = p.asking(ctx); err != nil {
		return err
	}
	p.parts = newParts(&p.Problem)
	return nil
}

// asking returns the allocator of Ask.
func (p *Problem) asking(ctx context.Context) (*allocator.Allocator, error) {
	with := p.Problem
	with.Options = append(slices.Clone(p.Options), allocator.WithReasons())
	return with.NewAllocator(ctx)
}

// Ask searches devices for the claims on the node, like the scheduler. An error means that the claims can't be allocated on any
// node. If an exhausted budget or a failed evaluation ended the search, Ask returns an incomplete explanation and the error.
func (p *Problem) Ask(ctx context.Context, node *v1.Node) (*Explanation, error) {
	a := p.asked
	if a == nil {
		var err error
		if a, err = p.asking(ctx); err != nil {
			return nil, err
		}
	}
	e := &Explanation{Node: node.Name}
	requests, err := a.RequestDevices(ctx, node, p.Claims)
	if errors.Is(err, structured.ErrFailedAllocationOnNode) {
		// The devices of the node can't be determined, so there are no counts to report.
		e.Failed, e.Reason, e.Requests = true, err.Error(), []Request{}
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		e.Requests = append(e.Requests, Request{
			Claim: klog.KObj(r.Claim).String(), Name: r.Request,
			Wanted: r.Wanted, Matching: len(r.Matching) + len(r.Unusable), Unusable: len(r.Unusable), Free: len(r.Free), Failed: len(r.Failed),
		})
	}
	results, details, err := a.AllocateWithDetails(ctx, node, p.Claims)
	e.take(p.Claims, results, &details)
	if err == nil {
		e.Fits = true
		return e, nil
	}
	if !errors.Is(err, structured.ErrFailedAllocationOnNode) {
		return e, err
	}
	e.Reason = err.Error()
	if failure, ok := errors.AsType[*allocator.EvaluationError](err); ok {
		// The search ended when the constraint failed, so other sets were not examined.
		e.Failed, e.Reason = true, failure.Detail()
	}
	return e, nil
}

func (p *Problem) explain(ctx context.Context, node *v1.Node, e *Explanation) error {
	p, err := p.onNode(node, slices.ContainsFunc(e.Requests, Request.hasNone))
	if err != nil {
		return err
	}
	if e.Unmet, err = p.unmet(ctx, node); err != nil {
		return err
	}
	present := p.present(node, e.Requests)
	with := p.relaxed(node, present)
	a, err := with.NewAllocator(ctx)
	if err != nil {
		return err
	}
	devices, err := a.NodeDevices(node)
	if err != nil {
		return err
	}
	owners := p.owners(devices)
	causes, without, err := p.causes(ctx, node, e.Requests, present, owners)
	if e.Causes = causes; err != nil {
		return err
	}
	owners, ever, err := without.inTheWay(ctx, node, owners)
	e.Never = !ever && len(causes) == 0 && err == nil
	e.InTheWay, e.OthersInTheWay = p.named(owners)
	return err
}

// unmet returns the first condition that leaves no solution, in the order of conditions.
func (p *Problem) unmet(ctx context.Context, node *v1.Node) (*Condition, error) {
	p, conditions, err := p.withConditions(ctx)
	if err != nil {
		return nil, err
	}
	// The condition for the last index is known: the complete claims have no solution.
	first := sort.Search(len(conditions), func(i int) bool {
		if err != nil {
			return false
		}
		var results []resourceapi.AllocationResult
		results, err = p.fitsUpTo(ctx, node, conditions, i-1)
		return err == nil && results == nil
	})
	if err != nil || first == 0 {
		return nil, err
	}
	return &conditions[first-1], nil
}

func (p *Problem) fitsUpTo(ctx context.Context, node *v1.Node, conditions []Condition, last int) ([]resourceapi.AllocationResult, error) {
	claims, err := p.upTo(conditions, last)
	if err != nil {
		return nil, err
	}
	return p.fits(ctx, node, claims, p.Allocated)
}
