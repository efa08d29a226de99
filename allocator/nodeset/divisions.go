// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// If expressions read pods, a set of nodes alone has no result: the result depends on the pods that each node gets. So the pods
// are divided into loads before the search.
//
//  1. kindCounts chooses the number of pods of each kind, if nodes are chosen for a part of the pods.
//  2. divisions lists the ways to divide these pods into loads. With one pod on each node there is one way.
//  3. For each way there is a search. It has a request for each different load, and a candidate for each load that a node can take.
//     A node is in a set once ([condition]).
//  4. Without a preference the first set is chosen, otherwise the best set of all divisions.

const (
	// maxDivisions limits the number of divisions that are tried for a group.
	maxDivisions = 256
	// maxDivisionSteps limits the steps to list divisions: a kind of pods for a node.
	maxDivisionSteps = 1 << 22
	// maxMembers limits the number of candidates of a search: nodes times kinds of pods, or nodes times different loads.
	maxMembers = 1 << 15
	// maxMembersOfAll limits the number of candidates of the searches for all divisions. Each of them may run filters.
	maxMembersOfAll = 1 << 18
)

// chooseByPods chooses nodes for count pods if expressions read pods.
func (s *Search) chooseByPods(ctx context.Context, count int) (best *Choice, err error) {
	placed := s.placed()
	s.tried.sizes = [2]int{placed + (count+s.podsPerNode()-1)/s.podsPerNode(), placed + count}
	members := len(s.Nodes) * len(s.Kinds)
	if members > maxMembers {
		return nil, s.failed(nil, fmt.Sprintf("the expression distinguishes %d kinds of pods, and %d nodes with %d kinds make %d candidates, the limit is %d: read fewer labels of pods, or narrow the nodes with a nodeSelector",
			len(s.Kinds), len(s.Nodes), len(s.Kinds), members, maxMembers))
	}
	steps := 0
	members = 0
	all := kindCounts(s.Kinds, count, maxKindCounts)
	for _, kinds := range all {
		for requests := range s.divisions(kinds, &steps) {
			more := len(requests) * len(s.Nodes)
			if members += more; s.tried.divisions == maxDivisions || more > maxMembers || members > maxMembersOfAll {
				return s.firstOnly(best), nil
			}
			s.tried.divisions++
			choice, err := s.ofDivision(ctx, requests)
			if _, over := errors.AsType[*allocator.BudgetError](err); over && best != nil {
				best.Outcome = allocator.PreferenceBestFound
				return best, nil
			}
			switch {
			case err != nil:
				return nil, err
			case choice == nil:
			case s.Constraint.Preference == "":
				return choice, nil
			case best == nil || value(choice) > value(best):
				best = choice
			}
		}
	}
	if steps > maxDivisionSteps || len(all) == maxKindCounts {
		return s.firstOnly(best), nil
	}
	return best, nil
}

// firstOnly returns the best choice of the divisions so far, and records that there are more of them.
func (s *Search) firstOnly(best *Choice) *Choice {
	s.tried.isPartial = true
	if best != nil {
		best.Outcome = allocator.PreferenceBestFound
	}
	return best
}

// ofDivision chooses a set for the requests of a division.
func (s *Search) ofDivision(ctx context.Context, requests []request) (*Choice, error) {
	problem, err := s.divided(ctx, requests)
	if err != nil {
		return nil, err
	}
	set, err := s.run(ctx, problem, s.conditionOnMembers(ctx, problem))
	if set == nil || err != nil {
		return nil, err
	}
	return s.choice(membersOf(set.members, len(s.Kinds)), set.Details), nil
}

func (s *Search) divided(ctx context.Context, requests []request) (*Problem, error) {
	return newProblem(&Problem{Group: s.Group, requests: requests, takes: func(node int, load Load) bool { return s.hasRoom(ctx, node, load) }})
}

// hasRoom reports whether a node takes a load in addition to the pods of the group that run there.
func (s *Search) hasRoom(ctx context.Context, node int, load Load) bool {
	return load.Pods() <= s.free(node) && s.takes(ctx, node, load)
}

// conditionOnMembers returns the condition on sets of members that have loads already, or nil.
func (s *Search) conditionOnMembers(ctx context.Context, p *Problem) *condition {
	if p.ReadsDevices {
		// The claim has a constraint that excludes members of the same node.
		return nil
	}
	c := &condition{eachNodeOnce: !p.isPlain()}
	if s.Hosts != nil && s.Hosts.Compete() {
		c.accept = func(chosen []member) bool {
			together, err := s.Hosts.Together(ctx, membersOf(chosen, len(s.Kinds)))
			if err != nil {
				// The error ends the search.
				s.err = err
			}
			return together || s.err != nil
		}
	}
	c.addSegments(ctx, s, func(chosen []member) []Member { return membersOf(chosen, len(s.Kinds)) })
	if !c.eachNodeOnce && c.accept == nil {
		return nil
	}
	return c
}

// membersOf returns the members of a choice. Members that are placed may have no load.
func membersOf(chosen []member, kinds int) []Member {
	members := make([]Member, len(chosen))
	for i, m := range chosen {
		members[i] = Member{Node: m.node, Load: append(Load{}, m.load...), Set: m.set}
		if m.load == nil {
			members[i].Load = make(Load, kinds)
		}
	}
	return members
}

// divisions yields the ways to divide pods into loads, as requests. Ways with fewer nodes come first. Within a number of nodes, ways
// whose first nodes get more pods, and more pods of earlier kinds, come first. It stops once steps exceeds maxDivisionSteps.
func (s *Search) divisions(kinds []int, steps *int) iter.Seq[[]request] {
	return func(yield func([]request) bool) {
		pods, placed := Load(kinds).Pods(), s.placed()
		if s.podsPerNode() == 1 || pods == 0 {
			yield(unitLoads(kinds, placed))
			return
		}
		most := min(pods, len(s.Nodes)-placed, v1alpha1.MaxNodeSetSize-placed)
		for others := 0; others <= most; others++ {
			d := &divider{perNode: s.podsPerNode(), left: slices.Clone(kinds), steps: steps, yield: yield}
			if !d.divide(pods, placed, others, nil) {
				return
			}
		}
	}
}

// unitLoads returns a request for each kind of pods, with one pod on each node.
func unitLoads(kinds []int, placed int) (all []request) {
	if placed > 0 {
		all = append(all, request{name: placedPrefix, count: placed, placed: true, load: make(Load, len(kinds))})
	}
	for kind, count := range kinds {
		if count > 0 {
			load := make(Load, len(kinds))
			load[kind] = 1
			all = append(all, request{name: otherPrefix + strconv.Itoa(kind), count: count, kind: kind, load: load})
		}
	}
	return all
}

// divider divides pods into loads. The loads of placed nodes come first, and may be empty. Within the placed and within the other
// nodes no load is greater than the load before it, so that each division occurs once.
type divider struct {
	perNode int
	// left holds the pods of each kind that have no node yet.
	left  []int
	steps *int
	yield func([]request) bool
}

// divide adds the loads of the remaining nodes, which get the remaining pods. It returns false once yield has, or after too many
// steps.
func (d *divider) divide(pods, placed, others int, loads []request) bool {
	if placed+others == 0 {
		return pods > 0 || d.yield(counted(loads))
	}
	var last Load
	if n := len(loads); n > 0 && loads[n-1].placed == (placed > 0) {
		last = loads[n-1].load
	}
	next := request{placed: placed > 0}
	// No later node of the same sort gets more pods than this node, and each node that is not placed gets a pod.
	var least, most int
	if next.placed {
		least, most = max(0, ceiling(pods-others*d.perNode, placed)), min(d.perNode, pods-others)
		placed--
	} else {
		least, most = max(1, ceiling(pods, others)), min(d.perNode, pods-others+1)
		others--
	}
	if last != nil {
		most = min(most, last.Pods())
	}
	for size := most; size >= least; size-- {
		var atMost Load
		if last != nil && size == last.Pods() {
			atMost = last
		}
		after := make([]int, len(d.left)+1)
		for kind := len(d.left) - 1; kind >= 0; kind-- {
			after[kind] = after[kind+1] + d.left[kind]
		}
		ok := d.eachLoad(after, size, atMost, make(Load, 0, len(d.left)), func(load Load) bool {
			next.load = slices.Clone(load)
			d.take(next.load, 1)
			ok := d.divide(pods-size, placed, others, append(loads, next))
			d.take(next.load, -1)
			return ok
		})
		if !ok {
			return false
		}
	}
	return true
}

func (d *divider) take(load Load, sign int) {
	for kind, n := range load {
		d.left[kind] -= sign * n
	}
}

// ceiling returns a divided by b, rounded up.
func ceiling(a, b int) int { return (a + b - 1) / b }

// eachLoad calls do for each load of size pods, with more pods of earlier kinds first, until do returns false or there are too many
// steps. If atMost is not nil, it leaves out the loads that come before atMost. after has, for each kind, the number of remaining pods
// of the kind and all later kinds.
func (d *divider) eachLoad(after []int, size int, atMost, load Load, do func(Load) bool) bool {
	if *d.steps++; *d.steps > maxDivisionSteps {
		return false
	}
	kind := len(load)
	if kind == len(d.left) {
		return do(load)
	}
	most := min(size, d.left[kind])
	if atMost != nil {
		most = min(most, atMost[kind])
	}
	for n := most; n >= max(0, size-after[kind+1]); n-- {
		rest := atMost
		if rest != nil && n < rest[kind] {
			rest = nil
		}
		if !d.eachLoad(after, size-n, rest, append(load, n), do) {
			return false
		}
	}
	return true
}

// counted returns a request for each different load.
func counted(loads []request) (all []request) {
	for _, r := range loads {
		if n := len(all); n > 0 && all[n-1].placed == r.placed && slices.Equal(all[n-1].load, r.load) {
			all[n-1].count++
			continue
		}
		r.count, r.name = 1, otherPrefix+strconv.Itoa(len(all))
		if r.placed {
			r.name = placedPrefix + strconv.Itoa(len(all))
		}
		all = append(all, r)
	}
	return all
}
