// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// byRole returns a clause with the number of nodes that can take a pod of each role, or "" if the numbers are equal. The role of a
// pod consists of the labels that expressions read.
func (s *Search) byRole() string {
	if !s.ReadsPods || len(s.Pods) != len(s.Kinds) {
		return ""
	}
	var roles []string
	kindsOf := map[string][]int{}
	for kind := range s.Kinds {
		role := s.roleOf(kind)
		if kindsOf[role] == nil {
			roles = append(roles, role)
		}
		kindsOf[role] = append(kindsOf[role], kind)
	}
	var texts []string
	counts := map[int]bool{}
	for _, role := range roles {
		able := 0
		for i := range s.Nodes {
			if n := &s.Nodes[i]; !n.Placed && slices.ContainsFunc(kindsOf[role], func(kind int) bool { return n.Takes[kind] }) {
				able++
			}
		}
		counts[able] = true
		texts = append(texts, fmt.Sprintf("%s: %d of %d nodes", role, able, len(s.Nodes)))
	}
	if len(counts) < 2 {
		return ""
	}
	return " (" + listed(texts) + ")"
}

// roleOf returns the values of the labels that differ between kinds of pods.
func (s *Search) roleOf(kind int) string {
	keys := map[string]bool{}
	for i := range s.Pods {
		for key := range s.Pods[i].Labels {
			keys[key] = true
		}
	}
	var values []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value, has := s.Pods[kind].Labels[key]
		differs := slices.ContainsFunc(s.Pods, func(other device.OfPod) bool {
			otherValue, otherHas := other.Labels[key]
			return otherValue != value || otherHas != has
		})
		switch {
		case !differs:
		case has:
			values = append(values, value)
		default:
			values = append(values, "without "+key)
		}
	}
	return strings.Join(values, "/")
}

// withoutSeats returns a message with the nodes that already run pods of the group, if a set exists for all pods of the group without
// some of these nodes. It assumes that a running pod fits where its node selector permits, unless the node takes no pod of the group.
func (s *Search) withoutSeats(ctx context.Context, opts []allocator.Option) string {
	if s.placed() == 0 || s.podsPerNode() > 1 {
		return ""
	}
	all := s.asIfNoneRan()
	problem, err := newProblem(&Problem{Group: all.Group, requests: unitLoads(all.Kinds, 0), takes: func(node int, load Load) bool {
		return all.Nodes[node].Takes[slices.Index(load, 1)]
	}})
	if err != nil || problem.Size() > v1alpha1.MaxNodeSetSize || len(all.Nodes)*len(all.Kinds) > maxMembers {
		return ""
	}
	prepared, err := s.Compiled(ctx, problem)
	if err != nil {
		return ""
	}
	set, err := s.choose(ctx, problem, prepared, all.Nodes, &condition{eachNodeOnce: !problem.isPlain()}, opts...)
	if err != nil || set == nil {
		return ""
	}
	var names []string
	for i := range s.Nodes {
		if s.Nodes[i].Placed && !slices.ContainsFunc(set.members, func(m member) bool { return m.node == i }) {
			names = append(names, s.Nodes[i].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; a set of %d nodes satisfies the constraint and can take the waiting pods, but it does not contain all nodes where pods of the group already run: %s", problem.Size(), listed(names))
}

// asIfNoneRan returns a search for all pods of the group, whose running pods count as waiting. The kinds of the waiting pods come
// first. Running pods of other kinds get kinds of their own.
func (s *Search) asIfNoneRan() *Search {
	group := *s.Group
	all := &Search{Group: &group, Nodes: slices.Clone(s.Nodes)}
	all.Kinds, all.Pods = slices.Clone(kindCounts(s.Kinds, s.tried.count, 1)[0]), slices.Clone(s.Pods)
	samples := make([]*v1.Pod, len(s.Kinds))
	for kind := range samples {
		if kind < len(s.Waiting) && len(s.Waiting[kind]) > 0 {
			samples[kind] = s.Waiting[kind][0]
		}
	}
	for i := range s.Nodes {
		for at, running := range s.Nodes[i].Running {
			kind := slices.IndexFunc(all.Pods, func(known device.OfPod) bool { return reflect.DeepEqual(known, running) })
			if kind < 0 {
				kind = len(all.Pods)
				all.Kinds, all.Pods, samples = append(all.Kinds, 0), append(all.Pods, running), append(samples, nil)
			}
			all.Kinds[kind]++
			if samples[kind] == nil && at < len(s.Nodes[i].Pods) {
				samples[kind] = s.Nodes[i].Pods[at]
			}
		}
	}
	for i := range all.Nodes {
		n := &all.Nodes[i]
		// If the specifications of all waiting pods exclude the node, nothing says that it is full.
		isAble := n.Placed || slices.Contains(n.Takes, true) || len(n.Elsewhere) > 0 && !slices.Contains(n.Elsewhere, false)
		takes := make([]bool, len(all.Kinds))
		for kind := range takes {
			if isWaiting := kind < len(n.Takes); isWaiting && !n.Placed {
				takes[kind] = n.Takes[kind]
			} else {
				takes[kind] = isAble && (samples[kind] == nil || labels.SelectorFromSet(samples[kind].Spec.NodeSelector).Matches(labels.Set(n.Labels)))
			}
		}
		n.Takes, n.Placed, n.Running = takes, false, nil
	}
	return all
}
