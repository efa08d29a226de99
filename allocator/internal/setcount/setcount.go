// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setcount counts the sets of a shape that can be allocated at the same time, which is a packing problem. The sets of
// the shape are listed once for each kind of hardware, as for the policy KeepWhole. The count is the greatest number of
// disjoint free sets in the list. If the list is incomplete, the package also allocates claims for the shape one after the
// other, and returns the larger count.
package setcount

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/freesets"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/objective"
	"github.com/celset/celset/allocator/internal/packing"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/search"
	"github.com/celset/celset/allocator/internal/shape"
	"github.com/celset/celset/cel/device/bitset"
)

// These are limits on the set members that packing may examine, for one node and for all nodes of a call. Examining a member
// takes a few nanoseconds. If the list of sets is incomplete, packing can't prove the maximum and gets less work.
const (
	packingWorkOfNode int64 = 4_000_000
	packingWorkOfSome int64 = 1_000_000
	packingWork       int64 = 400_000_000
)

// Count is the number of sets of a shape that can be allocated at the same time.
type Count struct {
	// Sets is the number of sets found.
	Sets int
	// IsMost is true if it is proven that no more sets are possible.
	IsMost bool
}

// Plus returns the sum of two counts. The counts must be for different devices.
func (c Count) Plus(o Count) Count {
	return Count{Sets: c.Sets + o.Sets, IsMost: c.IsMost && o.IsMost}
}

// On returns, for each node, the number of claims for the shape that could be allocated there at the same time. An error
// concerns the shape, the slices of a node or the context.
func On(ctx context.Context, p *plan.Planner, nodes []*v1.Node, of shape.Shape) ([]Count, error) {
	c := newCounting(ctx, p, nodes, of)
	counts := make([]Count, len(nodes))
	for i, node := range nodes {
		var err error
		if counts[i], err = c.on(node); err != nil {
			return nil, fmt.Errorf("%d devices of class %s with constraint %s, node %s: %w", of.Count, of.Class, of.Constraint, node.Name, err)
		}
	}
	return counts, nil
}

// counting is the state of counting the sets of one shape on some nodes.
type counting struct {
	ctx     context.Context
	planner *plan.Planner
	shape   shape.Shape
	// severalNodes is true if a device may belong to several nodes, so that it must be counted only once.
	severalNodes bool
	// used holds the devices that are in use or have been counted. state reads the same set.
	used  sets.Set[structured.DeviceID]
	state *availability.State
	work  packing.Work
	// cached caches the counts of nodes without shared devices and counters.
	cached map[countedKey]Count
}

// countedKey holds everything that a count depends on if devices share no counters: the list of sets and the free devices.
type countedKey struct {
	listed *freesets.Sets
	free   string
}

func newCounting(ctx context.Context, p *plan.Planner, nodes []*v1.Node, of shape.Shape) *counting {
	c := &counting{
		ctx: ctx, planner: p, shape: of, severalNodes: len(nodes) > 1,
		used: p.State.Exclusive(), work: packing.Work{Left: packingWork}, cached: map[countedKey]Count{},
	}
	state := p.State.AllocatedState
	state.AllocatedDevices = c.used
	c.state = availability.NewState(state)
	return c
}

// on returns the count for one node.
func (c *counting) on(node *v1.Node) (Count, error) {
	if err := c.ctx.Err(); err != nil {
		return Count{}, err
	}
	has, err := c.planner.InventoryOf(node)
	if err != nil || len(has.Candidates) == 0 {
		return Count{IsMost: err == nil}, err
	}
	listed, err := objective.ListedSets(c.ctx, c.planner, node, has, c.shape)
	if err != nil || listed.Len() == 0 && listed.All {
		return Count{IsMost: err == nil}, err
	}
	r := newReservations(c.planner, node, has, c.state)
	key := countedKey{listed, fmt.Sprint(r.free)}
	if known, ok := c.cached[key]; ok {
		return known, nil
	}
	chosen, isMost := c.pack(has, listed, r)
	if !listed.All {
		isMost = false
		inOrder, err := c.oneByOne(node, has)
		if err != nil {
			return Count{}, err
		}
		if len(inOrder) > len(chosen) {
			chosen = inOrder
		}
	}
	if c.useUp(has, chosen) {
		isMost = false
	}
	count := Count{Sets: len(chosen), IsMost: isMost}
	if has.IsPlain {
		c.cached[key] = count
	}
	return count, nil
}

// pack chooses as many disjoint free sets as possible from the list. isMost is true if no more are possible.
func (c *counting) pack(has *inventory.Inventory, listed *freesets.Sets, r *reservations) (chosen [][]int, isMost bool) {
	free := slices.DeleteFunc(listed.Positions(), func(set []int) bool {
		return slices.ContainsFunc(set, func(position int) bool { return !r.free.Has(position) })
	})
	work := packing.Work{Left: min(packingWorkOfNode, c.work.Left)}
	if !listed.All {
		work.Left = min(packingWorkOfSome, c.work.Left)
	}
	before := work.Left
	var others packing.Reservations
	if r.matters {
		others = r
	}
	places, isMost := packing.Most(free, len(has.Candidates), others, &work)
	c.work.Left -= before - work.Left
	for _, i := range places {
		chosen = append(chosen, free[i])
	}
	return chosen, isMost
}

// oneByOne allocates claims for the shape until no further claim fits. It returns the sets, and gives back their devices.
func (c *counting) oneByOne(node *v1.Node, has *inventory.Inventory) (chosen [][]int, err error) {
	p := c.planner.IdlePlanIn(c.state, c.shape)
	defer func() {
		for _, set := range chosen {
			for _, position := range set {
				c.used.Delete(has.Candidates[position].ID)
			}
		}
	}()
	for {
		allocated := c.state.Of(has.Candidates)
		for _, candidate := range has.Candidates {
			if candidate.Shared && c.state.IsShared(candidate.ID) {
				allocated.Add(candidate.Position)
			}
		}
		if len(has.Candidates)-allocated.Count() < c.shape.Count {
			return chosen, nil
		}
		s, err := search.New(c.ctx, p.With(node, has, allocated), nil)
		if err != nil {
			return chosen, err
		}
		found, err := s.Run()
		if ended := s.Work.Cancelled(); ended != nil {
			return chosen, ended
		}
		if !found || err != nil {
			// Counting ends if no further claim fits, an expression fails, or the budget is exhausted.
			return chosen, nil
		}
		var set []int
		for _, choice := range s.Solution.Choices {
			set = append(set, choice.Position)
			c.used.Insert(choice.ID)
		}
		chosen = append(chosen, set)
	}
}

// useUp marks the chosen devices that other nodes can reach as used. It returns true if there were such devices.
func (c *counting) useUp(has *inventory.Inventory, chosen [][]int) (any bool) {
	if !c.severalNodes {
		return false
	}
	for _, set := range chosen {
		for _, position := range set {
			if candidate := has.Candidates[position]; candidate.Slice.Spec.NodeName == nil {
				c.used.Insert(candidate.ID)
				any = true
			}
		}
	}
	return any
}

// reservations implements [packing.Reservations]. It tracks the counters that the devices of chosen sets consume.
type reservations struct {
	available  *availability.Availability
	candidates []*inventory.Candidate
	free       bitset.Set
	// matters is true if some devices consume counters.
	matters bool
	taken   []availability.Reservation
}

func newReservations(a *plan.Planner, node *v1.Node, has *inventory.Inventory, state *availability.State) *reservations {
	allocated := state.Of(has.Candidates)
	r := &reservations{
		available:  availability.New(a.Features, node, state, allocated, len(has.Candidates)),
		candidates: has.Candidates,
		free:       bitset.New(len(has.Candidates)),
	}
	for position, c := range has.Candidates {
		r.matters = r.matters || len(c.Device.ConsumesCounters) > 0
		if allocated.Has(position) || c.Shared && state.IsShared(c.ID) {
			continue
		}
		if reserved, ok := r.available.Reserve(c); ok {
			r.available.Release(c, reserved)
			r.free.Add(position)
		}
	}
	return r
}

// Take implements [packing.Reservations].
func (r *reservations) Take(set []int) bool {
	for i, position := range set {
		reserved, ok := r.available.Reserve(r.candidates[position])
		if !ok {
			r.GiveBack(set[:i])
			return false
		}
		r.taken = append(r.taken, reserved)
	}
	return true
}

// GiveBack implements [packing.Reservations].
func (r *reservations) GiveBack(set []int) {
	for _, position := range slices.Backward(set) {
		last := len(r.taken) - 1
		r.available.Release(r.candidates[position], r.taken[last])
		r.taken = r.taken[:last]
	}
}
