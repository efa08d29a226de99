// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
)

// maxAssignmentSteps limits the steps of all assignments of a search: a kind of pods on a node, or an edge of a matching.
const maxAssignmentSteps = 1 << 19

// assignment assigns pods to the nodes of a set.
//
// If each node takes one pod, the assignment is a bipartite matching, found by augmenting paths. Otherwise the nodes get their
// pods one node after the other. The search first gives a node as many pods as possible, starting with the first kinds. If the
// remaining pods don't fit on the remaining nodes, the search backtracks. It tries each node with the same remaining pods once.
type assignment struct {
	search *Search
	ctx    context.Context
	nodes  []int
	// left holds the number of pods of each kind that have no node yet. count is the sum of these numbers.
	left  []int
	count int
	loads []Load
	// most and needs are indexed by position in nodes. They hold the greatest and the least number of pods that this node and
	// all later nodes can take together.
	most, needs []int
	failed      map[string]bool
}

// step counts a step. It returns false if the limit on steps is exceeded.
func (a *assignment) step() bool {
	a.search.steps++
	return a.search.steps <= maxAssignmentSteps
}

// assign assigns count pods to the nodes. It returns nil if the pods don't fit or a node would get no pod.
func (s *Search) assign(ctx context.Context, nodes []int, count int) ([]Member, error) {
	a := &assignment{search: s, ctx: ctx, nodes: nodes, count: count, failed: map[string]bool{}}
	a.left = append(a.left, s.Kinds...)
	found := false
	if s.podsPerNode() == 1 {
		found = a.match()
	} else {
		a.bound()
		found = a.from(0)
	}
	switch {
	case s.err != nil:
		return nil, s.err
	case s.steps > maxAssignmentSteps:
		return nil, fmt.Errorf("assigning the pods to sets of nodes takes more than %d steps: use fewer kinds of pods, or a smaller podsPerNode", maxAssignmentSteps)
	case !found:
		return nil, nil
	}
	members := make([]Member, len(nodes))
	for i, node := range nodes {
		members[i] = Member{Node: node, Load: a.loads[i]}
	}
	if s.Hosts == nil || !s.Hosts.Compete() {
		return members, nil
	}
	together, err := s.Hosts.Together(ctx, members)
	if !together {
		members = nil
	}
	return members, err
}

// bound fills most and needs.
func (a *assignment) bound() {
	s := a.search
	a.most, a.needs = make([]int, len(a.nodes)+1), make([]int, len(a.nodes)+1)
	all := kindsBelow(len(s.Kinds))
	for i := len(a.nodes) - 1; i >= 0; i-- {
		a.most[i], a.needs[i] = a.most[i+1]+s.slotsFor(a.nodes[i], all), a.needs[i+1]
		if !s.Nodes[a.nodes[i]].Placed {
			a.needs[i]++
		}
	}
}

// from assigns the remaining pods to node i and all later nodes. It returns false if that is impossible.
func (a *assignment) from(i int) bool {
	if a.count < a.needs[i] || a.count > a.most[i] {
		return false
	}
	if i == len(a.nodes) {
		return true
	}
	key := keyOf(i, a.left)
	if a.failed[key] {
		return false
	}
	for pods := min(a.search.free(a.nodes[i]), a.count-a.needs[i+1]); pods >= a.needs[i]-a.needs[i+1]; pods-- {
		if a.load(i, 0, pods, make(Load, len(a.left))) {
			return true
		}
	}
	a.failed[key] = true
	return false
}

// load chooses pods of the given kind and all later kinds for node i, and then assigns the remaining pods to the later nodes.
func (a *assignment) load(i, kind, pods int, load Load) bool {
	if !a.step() {
		return false
	}
	if kind == len(load) {
		if pods > 0 || a.search.err != nil || !a.search.takes(a.ctx, a.nodes[i], load) {
			return false
		}
		a.take(load, 1)
		a.loads = append(a.loads, append(Load{}, load...))
		if a.from(i + 1) {
			return true
		}
		a.loads = a.loads[:i]
		a.take(load, -1)
		return false
	}
	for n := min(a.left[kind], pods, a.search.slots.most[a.nodes[i]][kind]); n >= 0; n-- {
		load[kind] = n
		if a.load(i, kind+1, pods-n, load) {
			return true
		}
	}
	load[kind] = 0
	return false
}

func (a *assignment) take(load Load, sign int) {
	for kind, n := range load {
		a.left[kind] -= sign * n
		a.count -= sign * n
	}
}

// match assigns one pod to each node that runs no pod of the group. owners maps each kind to the nodes that get such a pod.
func (a *assignment) match() bool {
	s := a.search
	owners := make([][]int, len(s.Kinds))
	var augment func(i int, seen []bool) bool
	augment = func(i int, seen []bool) bool {
		for kind, most := range s.Kinds {
			if !a.step() {
				return false
			}
			if seen[kind] || s.slots.most[a.nodes[i]][kind] == 0 {
				continue
			}
			seen[kind] = true
			if len(owners[kind]) < most {
				owners[kind] = append(owners[kind], i)
				return true
			}
			for at, other := range owners[kind] {
				if augment(other, seen) {
					owners[kind][at] = i
					return true
				}
			}
		}
		return false
	}
	matched := 0
	for i, node := range a.nodes {
		if s.Nodes[node].Placed {
			continue
		}
		if !augment(i, make([]bool, len(s.Kinds))) {
			return false
		}
		matched++
	}
	a.loads = make([]Load, len(a.nodes))
	for i := range a.loads {
		a.loads[i] = make(Load, len(s.Kinds))
	}
	for kind, nodes := range owners {
		for _, i := range nodes {
			a.loads[i][kind] = 1
		}
	}
	return matched == a.count
}
