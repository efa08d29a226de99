// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"weak"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/freesets"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device/bitset"
)

// setsOn are the sets of a shape on the node of a search whose view has what the shape reads, as far
// as they were found. The error is that the context or the attempt has ended, or that of an
// attempt's budget.
func (h *shapes) setsOn(s *search, shape Shape) (*freesets.Sets, error) {
	idle, claim := h.idle(), h.claimFor(shape)
	list := func() (*freesets.Sets, error) {
		return listSets(s.ctx, idle.planFor([]*resourceapi.ResourceClaim{claim}).onIdle(s.node, s.inventory))
	}
	content, ok := idle.resolved(claim).fingerprint()
	if !ok || s.inventory.DevicesSelectNodes() {
		return list()
	}
	by := shapeFeatures{features: s.planner.features, environment: s.planner.environment}
	if !s.inventory.IsPlain {
		by.devices = weak.Make(s.inventory)
	}
	key := tableKey{view: s.viewID(), kind: tableOfSets, by: by, text: content}
	found, _, err := find(s.ctx, idle.cache.tables.At(key), func() (weighed, error) {
		sets, err := list()
		if err != nil {
			return weighed{}, err
		}
		return weighed{value: sets, bytes: sets.Bytes()}, nil
	})
	sets, _ := found.value.(*freesets.Sets)
	return sets, err
}

// onIdle is a plan on a node of which nothing is in use.
func (p *plan) onIdle(node *v1.Node, has *inventory.Inventory) onNode {
	return onNode{p, node, has, bitset.New(len(has.Candidates))}
}

// listSets looks for all sets that the claims could get. An expression that fails ends it, as does
// the budget: what others may ask for keeps nobody from being served.
func listSets(ctx context.Context, on onNode) (*freesets.Sets, error) {
	result, devices := &freesets.Sets{}, len(on.inventory.Candidates)
	s, err := newSearch(ctx, on, nil)
	if err == nil {
		s.tellsApart, result.All = true, true
		var positions []int
		for found := range s.solutions() {
			positions = positions[:0]
			for _, c := range found.choices {
				positions = append(positions, c.Position)
			}
			result.Add(positions, devices)
			if result.Len() == freesets.MaxSets {
				result.All = false
				break
			}
		}
		err = s.err
		result.All = result.All && err == nil
		s.work.charge()
		if ended := s.work.Cancelled(); ended != nil {
			return nil, ended
		}
	}
	if over, is := errors.AsType[*BudgetError](err); is && over.Attempt {
		return nil, err
	}
	if devices > exactDevices {
		return result.Thin(thinnedSets), nil
	}
	return result, nil
}

// On nodes of at most so many devices all sets of a shape are counted. Of larger ones it is a sample,
// since each device is part of many.
const (
	exactDevices = 16
	thinnedSets  = 512
)
