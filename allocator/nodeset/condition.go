// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"slices"

	"github.com/celset/celset/allocator"
)

// condition is a condition on sets of nodes, the counterpart of [allocator.Acceptance] for sets of devices.
type condition struct {
	totals []total
	// accept reports whether a set that satisfies the totals is accepted. If it is nil, every set is accepted.
	accept func(members []member) bool
	// eachNodeOnce is set if a node has several members. A set contains at most one of them.
	eachNodeOnce bool
}

// total is an inequality: the sum of the nodes' weights must be at least the value of least.
type total struct {
	weight func(node int) int
	least  int
}

// over returns the condition for a search whose candidates are the given members.
func (c *condition) over(all []member) allocator.Acceptance {
	result := allocator.Acceptance{}
	for _, t := range c.totals {
		result.Totals = append(result.Totals, allocator.Total{Weight: func(i int) int { return t.weight(all[i].node) }, Least: t.least})
	}
	if c.accept != nil {
		result.Accept = func(chosen []int) bool {
			members := make([]member, len(chosen))
			for i, at := range chosen {
				members[i] = all[at]
			}
			return c.accept(members)
		}
	}
	if c.eachNodeOnce {
		result.Group = func(i int) int { return all[i].node }
	}
	return result
}

// maxTotals limits the number of inequalities in a condition.
const maxTotals = 16

// condition returns the condition that count pods can be assigned to the nodes of a set. It returns nil if every set of the
// given size satisfies the condition.
//
// For a subset of the kinds, let least be count minus the number of pods of other kinds. At least this number of the assigned
// pods are of the subset, so the nodes need at least this number of slots for the subset. This is an inequality. With up to
// three kinds there is an inequality for each subset. By Hall's theorem the inequalities suffice if each node takes one pod.
// Otherwise a set may satisfy the inequalities although the pods can't be assigned.
func (s *Search) condition(ctx context.Context, count, size int) *condition {
	if count == 0 {
		return nil
	}
	c := &condition{}
	for _, kinds := range subsets(len(s.Kinds)) {
		least := count - s.pods()
		for _, kind := range kinds {
			least += s.Kinds[kind]
		}
		if least > 0 && !s.isTrivial(kinds, least, size) {
			c.totals = append(c.totals, total{func(node int) int { return s.slotsFor(node, kinds) }, least})
		}
	}
	if len(s.Kinds) > 1 || s.Hosts != nil && s.Hosts.Compete() {
		c.accept = func(chosen []member) bool {
			members, err := s.assign(ctx, nodesOf(chosen), count)
			if err != nil {
				// Accept the set, so that the search ends and returns s.err.
				s.err = err
			}
			return members != nil || s.err != nil
		}
	}
	c.addSegments(ctx, s, func(chosen []member) []Member {
		members, err := s.assign(ctx, nodesOf(chosen), count)
		if err != nil {
			return nil
		}
		return members
	})
	if len(c.totals) == 0 && c.accept == nil {
		return nil
	}
	return c
}

// addSegments adds the condition that the pods of each segment stay together, if some of them run already.
func (c *condition) addSegments(ctx context.Context, s *Search, assigned func(chosen []member) []Member) {
	if !s.dividesRunning(ctx) {
		return
	}
	accept := c.accept
	c.accept = func(chosen []member) bool {
		if accept != nil && !accept(chosen) {
			return false
		}
		members := assigned(chosen)
		return s.err != nil || members != nil && s.keepsSegments(ctx, s.choice(members, allocator.Details{}))
	}
}

func nodesOf(members []member) []int {
	nodes := make([]int, len(members))
	for i, m := range members {
		nodes[i] = m.node
	}
	return nodes
}

// isTrivial reports whether all sets of the size satisfy the inequality.
func (s *Search) isTrivial(kinds []int, least, size int) bool {
	smallest, sum := s.podsPerNode(), 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		switch {
		case n.Placed:
			sum += s.slotsFor(i, kinds)
		case slices.Contains(n.Takes, true):
			smallest = min(smallest, s.slotsFor(i, kinds))
		}
	}
	return sum+size*smallest >= least
}

// subsets returns the subsets of the kinds that get an inequality in a condition.
func subsets(kinds int) (all [][]int) {
	if kinds > 3 {
		all = append(all, kindsBelow(kinds))
		for kind := range min(kinds, maxTotals-1) {
			all = append(all, []int{kind})
		}
		return all
	}
	for mask := 1; mask < 1<<kinds; mask++ {
		var subset []int
		for kind := range kinds {
			if mask&(1<<kind) != 0 {
				subset = append(subset, kind)
			}
		}
		all = append(all, subset)
	}
	return all
}
