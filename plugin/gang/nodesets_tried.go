// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/plugin/cycle"
)

// triedSet is a chosen set of nodes with the pods assigned to each node. The scheduler tries the pods in their order.
type triedSet struct {
	group *schedulingapi.PodGroup
	// of is the state of the placement cycle that tries the set.
	of fwk.PlacementCycleState
	// assigned maps the UIDs of pods to their nodes in the set. Pods without a node in the set are absent.
	assigned map[types.UID]*assignedPod
	// on has the UIDs of the pods that have fitted on their nodes. most is the maximum that len(on) has reached.
	on   sets.Set[types.UID]
	most int
	// wanted is the number of assigned pods. complete is set once this many pods have fitted.
	wanted   int
	complete bool
	// asked is the pod that the scheduler tried last, or nil.
	asked *assignedPod
	// err is the reason if no set was chosen, otherwise "".
	err string
}

// assignedPod is a pod that is assigned to a node.
type assignedPod struct {
	uid  types.UID
	kind int
	// order is the number of assigned pods that the scheduler tries before this pod.
	order int
	node  int
	name  string
	// before counts, by kind, the pods on the same node that the scheduler tries before this pod.
	before nodeset.Load
	// devices holds the devices chosen for this pod. It is nil if the pod may get any devices.
	devices cycle.GroupDevices
}

// Clone implements [fwk.StateData].
func (t *triedSet) Clone() fwk.StateData { return t }

const triedSetKey fwk.StateKey = Name + "/set"

func triedSetIn(state fwk.CycleState) (*triedSet, bool) {
	data, err := state.Read(triedSetKey)
	if err != nil {
		return nil, false
	}
	t, ok := data.(*triedSet)
	return t, ok
}

func (t *triedSet) isComplete() bool { return t.complete }

// hasFailedBefore reports whether a pod of the set that the scheduler tried before this pod did not fit.
func (t *triedSet) hasFailedBefore(pod *v1.Pod) bool {
	if at := t.assigned[pod.UID]; at != nil {
		return at.order > len(t.on)
	}
	return t.asked != nil && !t.on.Has(t.asked.uid)
}

// ask returns the node assigned to a pod, and records that the pod is tried. ok is false if the pod has no node in the set.
func (t *triedSet) ask(pod *v1.Pod) (node string, ok bool) {
	at := t.assigned[pod.UID]
	if at == nil {
		return "", false
	}
	t.asked = at
	return at.name, true
}

func (t *triedSet) fits(pod *v1.Pod) {
	t.on.Insert(pod.UID)
	t.most = max(t.most, len(t.on))
	t.complete = t.complete || len(t.on) == t.wanted
}

// generate returns placements that differ only in their names. Each placement contains all candidate nodes, so any set can be
// tried in any placement: the scheduler may try placements in any order. The names contain no "/", because the scheduler joins
// the names of several plugins' placements with it.
func (s *groupSearch) generate(constraint string) []*fwk.Placement {
	placements := make([]*fwk.Placement, maxPlacements)
	for i := range placements {
		placements[i] = &fwk.Placement{Name: fmt.Sprintf("%s#%d", constraint, i+1), Nodes: s.infos}
	}
	return placements
}

// next chooses another set after a pod was refused. It first forbids that the refusing node gets this pod beside the same other
// pods.
func (s *groupSearch) next(ctx context.Context, of fwk.PlacementCycleState) {
	before := s.tried
	s.tried = &triedSet{group: s.group, of: of}
	failed := before.asked
	if failed == nil || before.on.Has(failed.uid) {
		s.tried.err = cmp.Or(before.err, noOtherSet)
		return
	}
	load := append(nodeset.Load{}, failed.before...)
	load[failed.kind]++
	s.Forbid(failed.node, load)
	choice, status := s.choose()
	switch {
	case !status.IsSuccess():
		s.tried.err = status.Message()
	case choice == nil:
		s.tried.err = noOtherSet
	default:
		s.try(ctx, choice)
		s.tried.of = of
	}
}

// try assigns the pods of each kind, in the order of [nodeset.ComparePods], to the nodes of the choice.
func (s *groupSearch) try(ctx context.Context, choice *groupChoice) {
	t := &triedSet{group: s.group, wanted: choice.Pods, on: sets.New[types.UID](), assigned: map[types.UID]*assignedPod{}}
	memberOf := map[types.UID]int{}
	for kind, members := range s.Seats(ctx, choice.Choice) {
		for i, member := range members {
			memberOf[s.Waiting[kind][i].UID] = member
		}
	}
	before := make([]nodeset.Load, len(choice.Members))
	for i, m := range choice.Members {
		before[i] = make(nodeset.Load, len(m.Load))
	}
	// The scheduler tries the pods in this order.
	for _, pod := range s.pods {
		i, ok := memberOf[pod.UID]
		if !ok {
			continue
		}
		kind, node := s.hosts.kindOf[pod.UID], choice.Members[i].Node
		t.assigned[pod.UID] = &assignedPod{
			uid: pod.UID, kind: kind, order: len(t.assigned), node: node, name: s.Nodes[node].Name, before: slices.Clone(before[i]), devices: choice.devicesOf(i, kind, before[i][kind]),
		}
		before[i][kind]++
	}
	s.tried = t
}
