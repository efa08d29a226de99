// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Refusals is indexed by the kind of pods. An entry maps a reason why nodes can't take such a pod to the number of nodes.
type Refusals []map[string]int

// MaxReasons limits the number of reasons, nodes and pods that a message lists.
const MaxReasons = 4

// Reason returns a message why Choose found no nodes. why adds the reasons why nodes can't take pods.
func (s *Search) Reason(why Refusals) string {
	able := 0
	for _, n := range s.Nodes {
		if slices.Contains(n.Takes, true) && !n.Placed {
			able++
		}
	}
	size := fmt.Sprint(s.tried.sizes[0])
	if s.tried.sizes[0] != s.tried.sizes[1] {
		size += fmt.Sprintf(" to %d", s.tried.sizes[1])
	}
	text := fmt.Sprintf("no set of %s nodes%s satisfies constraint %s/%s", size, s.alreadyPlaced(), v1alpha1.AttributeDomain, s.Constraint.Name)
	if s.podsPerNode() > 1 {
		text += fmt.Sprintf(" and can take %d pods", s.tried.count)
	}
	text += fmt.Sprintf(": %d of %d nodes can take a pod%s", able, len(s.Nodes), s.byRole())
	if s.podsPerNode() > 1 && s.tried.most < s.tried.count {
		text += fmt.Sprintf(", together at most %d pods", s.tried.most)
	}
	counts := map[string]int{}
	for _, kind := range why {
		for reason, n := range kind {
			counts[reason] = max(counts[reason], n)
		}
	}
	if s.tried.isPartial {
		text += fmt.Sprintf(", and only the first %d ways to divide the pods among the nodes were searched: use a smaller podsPerNode, or read fewer labels of pods", s.tried.divisions)
	}
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for _, reason := range reasons[:min(len(reasons), MaxReasons)] {
		text += fmt.Sprintf(", %d %s", counts[reason], reason)
	}
	return text
}

// alreadyPlaced returns a clause with the number of nodes that already run pods of the group, or "" if there are no such nodes.
func (s *Search) alreadyPlaced() string {
	if s.placed() == 0 {
		return ""
	}
	return fmt.Sprintf(", of which %d already run pods of the group,", s.placed())
}

// NearestMiss describes the smallest change that would allow a set, or returns "". It first tries nodes that satisfy the
// expression but have too few slots, then sets with nodes that can't take a pod, and last sets without the nodes that already
// run pods of the group. why holds the reason why each node can't take a pod. standing returns an addition to this reason.
func (s *Search) NearestMiss(ctx context.Context, why []string, standing func(node int) string, opts ...allocator.Option) string {
	if s.ReadsDevices {
		return s.withDevicesForSeveral(ctx, opts)
	}
	if s.ReadsPods {
		return cmp.Or(s.withoutRefusals(ctx, why, standing, opts), s.withoutSeats(ctx, opts))
	}
	return cmp.Or(s.withoutRoom(ctx, opts), s.withoutRefusals(ctx, why, standing, opts), s.withoutPlaced(ctx, opts))
}

// withoutRefusals finds the set with the fewest nodes that can't take a pod, and returns a message with nodes and reasons.
func (s *Search) withoutRefusals(ctx context.Context, why []string, standing func(node int) string, opts []allocator.Option) string {
	size := s.tried.sizes[0] - s.placed()
	if size == 0 {
		return ""
	}
	nearest, err := s.nearestProblem(ctx, size)
	if err != nil {
		return ""
	}
	prepared, err := s.Compiled(ctx, nearest)
	if err != nil {
		return ""
	}
	nodes, isAble := able(s.Nodes), func(m *member) bool { return slices.Contains(s.Nodes[m.node].Takes, true) }
	var only *condition
	if s.ReadsPods {
		nodes, only = s.possible(), &condition{eachNodeOnce: !nearest.isPlain()}
		isAble = func(m *member) bool { return s.hasRoom(ctx, m.node, m.load) }
	}
	set, err := s.choose(ctx, nearest, prepared, nodes, only, opts...)
	if err != nil || set == nil {
		return ""
	}
	var unable []string
	for i := range set.members {
		m := &set.members[i]
		if n := &s.Nodes[m.node]; !n.Placed && !isAble(m) {
			unable = append(unable, n.Name+": "+s.whyNot(ctx, m, why[m.node])+standing(m.node))
		}
	}
	if len(unable) == 0 {
		return ""
	}
	return fmt.Sprintf("; nearest miss: a set of %d nodes satisfies the constraint, but %d of them can't take a pod: %s",
		nearest.Size(), len(unable), strings.Join(unable[:min(len(unable), MaxReasons)], "; "))
}

// nearestProblem returns a problem with more candidates: every node that the pods' specifications permit. A set is better if more
// of its nodes can take their pods.
func (s *Search) nearestProblem(ctx context.Context, size int) (*Problem, error) {
	p := &Problem{Group: s.Group, requests: requestsFor(s.placed(), []int{size}), nearest: true}
	if s.ReadsPods {
		steps := 0
		for _, kinds := range kindCounts(s.Kinds, s.tried.count, 1) {
			for p.requests = range s.divisions(kinds, &steps) {
				break
			}
		}
		p.isAble = func(node int, load Load) bool { return s.Nodes[node].Placed || s.hasRoom(ctx, node, load) }
		p.takes = s.mayTake
	}
	return newProblem(p)
}

// mayTake reports whether the specifications of the pods of a load permit a node.
func (s *Search) mayTake(node int, load Load) bool {
	n := &s.Nodes[node]
	for kind, count := range load {
		if count > 0 && !n.Placed && kind < len(n.Elsewhere) && n.Elsewhere[kind] {
			return false
		}
	}
	return true
}

// whyNot returns the reason why a node can't take the load of a member. If expressions read no pods, any is the reason.
func (s *Search) whyNot(ctx context.Context, m *member, any string) string {
	if !s.ReadsPods || s.Hosts == nil {
		return any
	}
	why, err := s.Hosts.Refusal(ctx, m.node, m.load)
	if err != nil {
		return any
	}
	return cmp.Or(why, any)
}

// possible returns the nodes such that each node where the pods may run is a candidate for all kinds of pods.
func (s *Search) possible() []Node {
	nodes := slices.Clone(s.Nodes)
	for i := range nodes {
		takes := make([]bool, len(s.Kinds))
		for kind := range takes {
			takes[kind] = kind >= len(nodes[i].Elsewhere) || !nodes[i].Elsewhere[kind]
		}
		nodes[i].Takes = takes
	}
	return nodes
}

// withoutRoom names nodes that satisfy the expression and can each take a pod, but not all pods together, and says why.
func (s *Search) withoutRoom(ctx context.Context, opts []allocator.Option) string {
	size := s.tried.sizes[0] - s.placed()
	if size == 0 || s.condition(ctx, s.tried.count, size) == nil {
		return ""
	}
	problem, err := NewProblem(s.Group, s.placed(), size)
	if err != nil {
		return ""
	}
	prepared, err := s.Compiled(ctx, problem)
	if err != nil {
		return ""
	}
	set, err := s.choose(ctx, problem, prepared, s.Nodes, nil, opts...)
	if err != nil || set == nil {
		return ""
	}
	var names, lacks []string
	for _, m := range set.members {
		names = append(names, s.Nodes[m.node].Name)
		if why := s.lacks(ctx, m.node); why != "" {
			lacks = append(lacks, why)
		}
	}
	text := fmt.Sprintf("; nodes %s satisfy the constraint, but together they can't take %d pods", listed(names), s.tried.count)
	if len(lacks) > 0 {
		return text + ": " + listed(lacks)
	}
	if s.Hosts.Compete() {
		text += ": the nodes share too few devices, or several pods use a claim that is not available on all of the nodes"
	}
	return text
}

// lacks returns a message about the first kind of pods that the node can take some but not all of, with the reason. It returns
// "" if there is no such kind.
func (s *Search) lacks(ctx context.Context, node int) string {
	for kind, count := range s.Kinds {
		most := s.slots.most[node][kind]
		if most == 0 || most >= min(count, s.free(node)) {
			continue
		}
		load := make(Load, len(s.Kinds))
		load[kind] = most + 1
		if why, err := s.Hosts.Refusal(ctx, node, load); err == nil && why != "" {
			return fmt.Sprintf("%s can take %d: %s", s.Nodes[node].Name, most, why)
		}
	}
	return ""
}

// withDevicesForSeveral returns a message if a set exists when pods on several nodes are allowed to get the same device.
func (s *Search) withDevicesForSeveral(ctx context.Context, opts []allocator.Option) string {
	problem, err := newProblem(&Problem{Group: s.Group, requests: requestsFor(s.placed(), kindCounts(s.Kinds, s.tried.count, 1)[0]), sharesDevices: true})
	if err != nil {
		return ""
	}
	prepared, err := s.Compiled(ctx, problem)
	if err != nil {
		return ""
	}
	if set, err := s.choose(ctx, problem, prepared, s.Nodes, nil, opts...); err != nil || set == nil {
		return ""
	}
	return "; some nodes satisfy the constraint, but pods on several nodes would get the same device or use the same counters of a pool that the nodes share"
}

// listed joins the first [MaxReasons] names.
func listed(names []string) string {
	if len(names) > MaxReasons {
		return strings.Join(names[:MaxReasons], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// withoutPlaced returns a message with the nodes that already run pods of the group, if a set exists without some of them.
func (s *Search) withoutPlaced(ctx context.Context, opts []allocator.Option) string {
	placed := s.placed()
	if placed == 0 {
		return ""
	}
	problem, err := NewProblem(s.Group, 0, s.tried.sizes[0])
	if err != nil {
		return ""
	}
	prepared, err := s.Compiled(ctx, problem)
	if err != nil {
		return ""
	}
	var names []string
	nodes := slices.Clone(s.Nodes)
	for i := range nodes {
		if nodes[i].Placed {
			names = append(names, nodes[i].Name)
			nodes[i].Placed, nodes[i].Takes = false, []bool{true}
		}
	}
	if set, err := s.choose(ctx, problem, prepared, nodes, nil, opts...); err != nil || set == nil {
		return ""
	}
	return fmt.Sprintf("; a set of %d nodes satisfies the constraint and can take pods, but it does not contain all nodes where pods of the group already run: %s", s.tried.sizes[0], listed(names))
}

// Standing returns a text with the names of pods in a namespace and the number of pods in other namespaces.
func Standing(pods iter.Seq[*v1.Pod], namespace string) (text string) {
	own, others := 0, 0
	for pod := range pods {
		switch {
		case pod.Namespace != namespace:
			others++
		case own < MaxReasons:
			own++
			text += ", pod " + pod.Name
		}
	}
	if others > 0 {
		text += fmt.Sprintf(", %d pods of other namespaces", others)
	}
	return text
}
