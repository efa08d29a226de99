// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/cel/device/bitset"
)

// acceptance checks the condition of the allocator's caller ([plan.Acceptance]) during a search. It comes before other
// constraints.
//
// r is the number of devices that a partial set lacks. The total of a completion is at most the sum of the set's weights plus
// the r greatest weights in the domain. If this bound is below the least sum, no completion exists. If a device together with
// the r-1 greatest weights stays below the least sum, the device leaves the domain.
//
// A set has at most one device of each group. So the other devices of a member's group leave the domain, and no completion exists
// if the devices in the domain belong to fewer than r groups.
type acceptance struct {
	*plan.Acceptance
	search *Search
	// size is the number of devices of a complete set.
	size    int
	members []*inventory.Candidate
	totals  []total
	// groups is nil if each device has a group of its own.
	groups *groups
}

// groups holds the groups of devices.
type groups struct {
	// of maps positions to groups, and at maps groups to positions. largest is the size of the largest group.
	of      []int
	at      [][]int
	largest int
	// taken holds the groups of the members. seen is a buffer for a set of groups.
	taken, seen bitset.Set
}

func newGroups(devices int, of func(position int) int) *groups {
	g := &groups{of: make([]int, devices)}
	for i := range g.of {
		g.of[i] = of(i)
		g.at = append(g.at, make([][]int, max(0, g.of[i]+1-len(g.at)))...)
		g.at[g.of[i]] = append(g.at[g.of[i]], i)
		g.largest = max(g.largest, len(g.at[g.of[i]]))
	}
	g.taken, g.seen = bitset.New(len(g.at)), bitset.New(len(g.at))
	return g
}

// total is the state of one inequality ([plan.Total]) during a search.
type total struct {
	least int
	// weights maps the position of a candidate to its weight. levels groups the positions by weight, in descending order.
	weights []int
	levels  []level
	// sum is the sum of the weights of the chosen devices.
	sum int
}

type level struct {
	weight int
	at     bitset.Set
}

func (s *Search) newAcceptance(of *plan.Acceptance, all []Alternatives) *acceptance {
	a := &acceptance{Acceptance: of, search: s}
	for _, alternatives := range all {
		a.size += alternatives.least().Count
	}
	for _, t := range of.Totals {
		a.totals = append(a.totals, newTotal(t, s.Inventory.Candidates))
	}
	if of.Group != nil {
		a.groups = newGroups(len(s.Inventory.Candidates), of.Group)
	}
	return a
}

func newTotal(of plan.Total, candidates []*inventory.Candidate) total {
	t := total{least: of.Least, weights: make([]int, len(candidates))}
	most := 0
	for i := range candidates {
		t.weights[i] = of.Weight(i)
		most = max(most, t.weights[i])
	}
	for weight := most; weight >= 0; weight-- {
		at := bitset.New(len(candidates))
		for i := range candidates {
			if t.weights[i] == weight {
				at.Add(i)
			}
		}
		if !at.IsEmpty() {
			t.levels = append(t.levels, level{weight, at})
		}
	}
	return t
}

// Add implements [constraint.Constraint].
func (a *acceptance) Add(_ *requests.Request, c *inventory.Candidate) (bool, error) {
	if a.groups != nil {
		if a.groups.taken.Has(a.groups.of[c.Position]) {
			return false, nil
		}
		a.groups.taken.Add(a.groups.of[c.Position])
	}
	a.members = append(a.members, c)
	for i := range a.totals {
		a.totals[i].sum += a.totals[i].weights[c.Position]
	}
	if a.mayBeAccepted() {
		return true, nil
	}
	a.Remove(c)
	return false, nil
}

func (a *acceptance) mayBeAccepted() bool {
	left := a.size - len(a.members)
	for i := range a.totals {
		if t := &a.totals[i]; t.sum+left*t.levels[0].weight < t.least {
			return false
		}
	}
	if left > 0 || a.Accept == nil {
		return true
	}
	positions := make([]int, len(a.members))
	for i, member := range a.members {
		positions[i] = member.Position
	}
	return a.Accept(positions)
}

// Remove implements [constraint.Constraint].
func (a *acceptance) Remove(c *inventory.Candidate) {
	for i := range a.totals {
		a.totals[i].sum -= a.totals[i].weights[c.Position]
	}
	a.members = a.members[:len(a.members)-1]
	if a.groups != nil {
		a.groups.taken.Remove(a.groups.of[c.Position])
	}
}

// Len implements [constraint.Constraint].
func (a *acceptance) Len() int { return len(a.members) }

// narrow removes each device from the domain that can't be one of the left devices that complete the set. It returns false if
// the domain has no devices that complete the set.
func (a *acceptance) narrow(domain bitset.Set, left int) bool {
	for i := range a.totals {
		if !a.totals[i].narrow(domain, left) {
			return false
		}
	}
	if a.groups == nil {
		return true
	}
	for _, member := range a.members {
		for _, position := range a.groups.at[a.groups.of[member.Position]] {
			domain.Remove(position)
		}
	}
	return a.groups.areEnough(domain, left)
}

// areEnough reports whether the devices in the domain belong to at least count groups.
func (g *groups) areEnough(domain bitset.Set, count int) bool {
	if domain.Count() >= count*g.largest {
		return true
	}
	g.seen.Clear()
	for i := range domain.All() {
		g.seen.Add(g.of[i])
	}
	return g.seen.Count() >= count
}

func (t *total) narrow(domain bitset.Set, left int) bool {
	sum, taken, last := t.sum, 0, 0
	for _, level := range t.levels {
		if taken == left {
			break
		}
		n := min(left-taken, domain.CountAnd(level.at))
		sum, taken = sum+n*level.weight, taken+n
		if n > 0 {
			last = level.weight
		}
	}
	if sum < t.least {
		return false
	}
	for _, level := range t.levels {
		// The upper bound for a set with a device of this level: the device replaces the lightest device counted in sum.
		if sum-last+level.weight < t.least {
			domain.Drop(level.at)
		}
	}
	return true
}

// key returns a string that is equal for two devices if every total gives them equal weights.
func (a *acceptance) key(position int) string {
	key := ""
	for i := range a.totals {
		key += fmt.Sprint(" ", a.totals[i].weights[position])
	}
	return key
}
