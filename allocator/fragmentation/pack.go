// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"cmp"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
)

// These are the limits of packing. place compares fitsForPacking nodes on which a group fits. All groups together have maxTries
// tries. Groups that fit on no node are pinned, and the others are placed again, in at most maxRounds rounds.
const (
	fitsForPacking = 32
	maxTries       = 200_000
	maxRounds      = 4
)

// placing is the state while groups are placed one after the other.
type placing struct {
	*cluster
	// state holds the devices in use. inUse holds their number on each node.
	state structured.AllocatedState
	inUse map[string]int
	// order lists the nodes by descending number of devices in use.
	order []*v1.Node
	// tries is the number of tries that are left.
	tries int
}

var errTriedEnough = errors.New("not all placements were tried, because there are too many claims and nodes")

// newPlacing returns the state before any group is placed. The devices of groups, which are pinned, are in use.
func (c *cluster) newPlacing(groups []*group, tries int) *placing {
	p := &placing{cluster: c, state: allocator.AllocatedTo(nil, c.problem.Features), inUse: map[string]int{}, tries: tries}
	p.order = slices.Clone(c.nodes)
	for _, g := range groups {
		p.take(g)
	}
	slices.SortStableFunc(p.order, func(x, y *v1.Node) int { return cmp.Compare(p.inUse[y.Name], p.inUse[x.Name]) })
	return p
}

// add marks the devices of a group as in use, and updates the order of the node.
func (p *placing) add(g *group, node string) {
	p.take(g)
	at := slices.IndexFunc(p.order, func(n *v1.Node) bool { return n.Name == node })
	for ; at > 0 && p.inUse[p.order[at-1].Name] < p.inUse[node]; at-- {
		p.order[at-1], p.order[at] = p.order[at], p.order[at-1]
	}
}

// take marks the devices of a group as in use.
func (p *placing) take(g *group) {
	more := allocator.AllocatedTo(g.claims, p.problem.Features)
	for id := range more.AllocatedDevices {
		p.state.AllocatedDevices.Insert(id)
		if node := p.places.nodes[poolOf(id)]; node != "" {
			p.inUse[node]++
		}
	}
	for id := range more.AllocatedSharedDeviceIDs {
		p.state.AllocatedSharedDeviceIDs.Insert(id)
	}
	for id, consumed := range more.AggregatedCapacity {
		p.state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, copyOf(consumed)))
	}
}

func copyOf(consumed structured.ConsumedCapacity) map[resourceapi.QualifiedName]resource.Quantity {
	result := make(map[resourceapi.QualifiedName]resource.Quantity, len(consumed))
	for name, amount := range consumed {
		result[name] = amount.DeepCopy()
	}
	return result
}

// place searches devices for a group. It returns the group with the devices that break the fewest sets, and the node. Of
// equally good nodes it takes the node with the most devices in use. It returns nil if the group fits on no node. The error is
// errTriedEnough or comes from the context.
func (p *placing) place(g *group) (moved *group, node string, err error) {
	// The state changes after each group, and an allocator copies it when created. So create an allocator for each group.
	a, err := allocator.NewAllocator(p.ctx, p.problem.Features, p.state, p.problem.Classes, p.problem.Slices, p.problem.Selectors, p.problem.Options...)
	if err != nil {
		return nil, "", err
	}
	var best []allocator.PreferenceValue
	fits, needs := 0, g.needs()
	for _, n := range p.order {
		if p.places.devices[n.Name]-p.inUse[n.Name]+p.places.everywhere < needs {
			continue
		}
		if p.tries == 0 {
			return nil, "", errTriedEnough
		}
		p.tries--
		results, details, err := a.AllocateWithDetails(p.ctx, n, g.claims)
		if p.ctx.Err() != nil {
			return nil, "", p.ctx.Err()
		}
		if over, is := errors.AsType[*allocator.BudgetError](err); is && over.Attempt {
			return nil, "", errTriedEnough
		}
		if err != nil || len(results) != len(g.claims) {
			// If allocating the group fails on this node, try the other nodes.
			continue
		}
		if moved == nil || isBetter(details.Preferences, best) {
			moved, node, best = g.with(results), n.Name, details.Preferences
		}
		if fits++; fits == fitsForPacking {
			break
		}
	}
	return moved, node, nil
}

// isBetter reports whether a has greater values than b. The first preference with different values decides.
func isBetter(a, b []allocator.PreferenceValue) bool {
	for i := range min(len(a), len(b)) {
		if a[i].Value != b[i].Value {
			return a[i].Value > b[i].Value
		}
	}
	return false
}

// pack allocates all groups again, largest first. It returns the claims with new devices, or nil and a reason.
func (c *cluster) pack() (claims []*resourceapi.ResourceClaim, reason string, err error) {
	pinned := make(map[*group]bool)
	for _, g := range c.groups {
		pinned[g] = g.pinned
	}
	tries := maxTries
	for range maxRounds {
		var staying, placed []*group
		for _, g := range c.groups {
			if pinned[g] {
				staying = append(staying, g)
			}
		}
		if len(staying) == len(c.groups) {
			return nil, "", nil
		}
		p := c.newPlacing(staying, tries)
		found := true
		for _, g := range c.groups {
			if pinned[g] {
				continue
			}
			moved, node, err := p.place(g)
			switch {
			case errors.Is(err, errTriedEnough):
				return nil, err.Error(), nil
			case err != nil:
				return nil, "", err
			case moved == nil:
				pinned[g], found = true, false
			default:
				p.add(moved, node)
				placed = append(placed, moved)
			}
		}
		if found {
			return claimsOf(append(staying, placed...)), "", nil
		}
		tries = p.tries
	}
	return nil, "no placement of all claims was found", nil
}
