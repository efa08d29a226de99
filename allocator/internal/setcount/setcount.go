// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setcount counts how many sets of a shape can be had at the same time, which is a question about packing. The sets of
// the shape are listed once for a kind of hardware, as for the policy KeepWhole, and of those that are free as many disjoint
// ones as possible are chosen. If not all sets were listed, claims for the shape are also allocated one after the other, as they
// would be if they came now, and the better count is taken.
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

// Packing may look at so many members of sets, for one node and for one call. It takes a few
// nanoseconds for each. Where not all sets are listed it would not find out that there are no more, and
// does less.
const (
	packingWorkOfNode int64 = 4_000_000
	packingWorkOfSome int64 = 1_000_000
	packingWork       int64 = 400_000_000
)

// Count is the number of sets of a shape that can be had at the same time.
type Count struct {
	// Sets is the number of sets that were found.
	Sets int
	// IsMost: there can't be more.
	IsMost bool
}

// Plus adds up what is true of different devices.
func (c Count) Plus(o Count) Count {
	return Count{Sets: c.Sets + o.Sets, IsMost: c.IsMost && o.IsMost}
}

// On counts for each node the claims for the shape that would get devices there now at the same time. The error is one of the
// shape or of a node's slices, or the context has ended.
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

// counting counts the sets of one shape on some nodes.
type counting struct {
	ctx     context.Context
	planner *plan.Planner
	shape   shape.Shape
	// severalNodes: a device may be counted for another node.
	severalNodes bool
	// used are the devices that are in use or were counted. state has them.
	used  sets.Set[structured.DeviceID]
	state *availability.State
	work  packing.Work
	// known is what was counted for the same sets and free devices.
	known map[countedKey]Count
}

// countedKey is all that a count depends on if devices share nothing.
type countedKey struct {
	listed *freesets.Sets
	free   string
}

func newCounting(ctx context.Context, p *plan.Planner, nodes []*v1.Node, of shape.Shape) *counting {
	c := &counting{
		ctx: ctx, planner: p, shape: of, severalNodes: len(nodes) > 1,
		used: p.State.Exclusive(), work: packing.Work{Left: packingWork}, known: map[countedKey]Count{},
	}
	state := p.State.AllocatedState
	state.AllocatedDevices = c.used
	c.state = availability.NewState(state)
	return c
}

// on counts for one node.
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
	if known, ok := c.known[key]; ok {
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
		c.known[key] = count
	}
	return count, nil
}

// pack chooses among the sets that were listed.
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

// oneByOne allocates claims for the shape until none fits any more.
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
			// An expression that fails ends it, as does a budget.
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

// useUp keeps devices from being counted for a second node. It reports whether there were any of that
// kind.
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

// reservations are what devices of a node take of each other's counters.
type reservations struct {
	available  *availability.Availability
	candidates []*inventory.Candidate
	free       bitset.Set
	// matters: there are counters.
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
