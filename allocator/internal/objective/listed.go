// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/freesets"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/search"
	"github.com/celset/celset/allocator/internal/shape"
)

// listSets returns all sets of devices that the claims could get. If an expression fails or the budget is exhausted, it returns
// the sets found so far, because a shape of other claims must not keep a claim from being allocated. It returns an error if the
// attempt's budget or the context ended.
func listSets(ctx context.Context, on plan.OnNode) (*freesets.Sets, error) {
	result, devices := &freesets.Sets{}, len(on.Inventory.Candidates)
	s, err := search.New(ctx, on, nil)
	if err == nil {
		s.SymmetryOff, result.All = true, true
		var positions []int
		for found := range s.Solutions() {
			positions = positions[:0]
			for _, c := range found.Choices {
				positions = append(positions, c.Position)
			}
			result.Add(positions, devices)
			if result.Len() == freesets.MaxSets {
				result.All = false
				break
			}
		}
		err = s.Err
		result.All = result.All && err == nil
		s.Work.Charge()
		if ended := s.Work.Cancelled(); ended != nil {
			return nil, ended
		}
	}
	if over, is := errors.AsType[*budget.Error](err); is && over.Attempt {
		return nil, err
	}
	if devices > exactDevices {
		return result.Thin(thinnedSets), nil
	}
	return result, nil
}

// On a node with at most exactDevices devices, all sets of a shape are counted. On a larger node, a sample of thinnedSets sets
// is enough, because each device is part of many sets.
const (
	exactDevices = 16
	thinnedSets  = 512
)

// ListedSets returns the sets of a shape on an idle node. If the budget of the attempt is exhausted, it returns no sets.
func ListedSets(ctx context.Context, p *plan.Planner, node *v1.Node, has *inventory.Inventory, of shape.Shape) (*freesets.Sets, error) {
	s, err := search.New(ctx, p.IdlePlan(of).OnIdle(node, has), nil)
	if err != nil {
		return nil, err
	}
	listed, err := s.SetsOf(ctx, of, listSets)
	if over, is := errors.AsType[*budget.Error](err); is && over.Attempt {
		return &freesets.Sets{}, nil
	}
	return listed, err
}
