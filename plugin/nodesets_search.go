// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// groupAttemptIn is the attempt of the group of which the cycle of a pod is part, nil if nodes are not chosen for it.
func groupAttemptIn(state fwk.CycleState) *guard.Attempt {
	if alone := askedAloneIn(state); alone != nil {
		return alone.attempt
	}
	if s := groupSearchIn(state); s != nil {
		return s.attempt
	}
	return nil
}

// maxGroupPods is how many pods of a group are placed together.
const maxGroupPods = 1024

// search chooses the first set of nodes for the pods of a group: for all of them, or for as many as it needs to start.
func (pl *NodeSets) search(ctx context.Context, state fwk.PodGroupCycleState, group *schedulingapi.PodGroup, name string, pods []*v1.Pod, nodes []fwk.NodeInfo, attempt *guard.Attempt) (*groupSearch, *fwk.Status) {
	unresolvable := func(err error) (*groupSearch, *fwk.Status) {
		pl.metrics.ObserveRefusal(metrics.RefusalConstraint)
		return nil, refused(fwk.UnschedulableAndUnresolvable, nodes, err.Error())
	}
	if len(pods) > maxGroupPods {
		return unresolvable(fmt.Errorf("PodGroup %s/%s has %d pods to place, at most %d are placed together", group.Namespace, group.Name, len(pods), maxGroupPods))
	}
	known, ok := pl.groups.own.Get(wantOf(group))
	if !ok {
		return nil, pl.notCompiled(pods[0], group, nodes)
	}
	own := known.(*ownConstraint)
	if own.err != nil {
		return unresolvable(own.err)
	}
	placed, err := pl.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	scheduled := slices.DeleteFunc(slices.Clone(placed.ScheduledPods()), func(pod *v1.Pod) bool { return pod.DeletionTimestamp != nil })
	constraint, err := v1alpha1.ResolveNodeSet(group, own.constraint, name, claimsOfPods(pl.handle, slices.Concat(pods, scheduled)), pl.handle.SharedDRAManager().DeviceClasses())
	if err != nil {
		return unresolvable(err)
	}
	s := &groupSearch{infos: slices.Clone(nodes), order: map[types.UID]int{}, kinds: map[types.UID]int{}, attempt: attempt, constraint: constraint}
	for i, pod := range pods {
		s.order[pod.UID] = i
	}
	s.pods = pods
	_, prepared, status := pl.problem(ctx, s, &nodeset.Group{Namespace: group.Namespace, Name: group.Name, Constraint: constraint, Kinds: []int{1}}, group)
	if !status.IsSuccess() {
		return nil, status
	}
	s.reading = nodeset.ReadingOf(prepared)
	s.lists = s.reading.Devices()
	if shared := pl.sharedClaim(pods); s.lists && shared != "" {
		return unresolvable(fmt.Errorf("ResourceClaim %s/%s is used by several pods of PodGroup %s, and constraint %s/%s reads what devices each of them gets: use a ResourceClaimTemplate",
			group.Namespace, shared, group.Name, v1alpha1.AttributeDomain, constraint.Name))
	}
	if s.lists && constraint.PodsPerNode > 1 {
		return unresolvable(fmt.Errorf("%s: podsPerNode is %d, but the expression reads n.devices, which are those of one pod: remove podsPerNode", constraint.Source, constraint.PodsPerNode))
	}
	slices.SortFunc(s.infos, func(a, b fwk.NodeInfo) int { return cmp.Compare(a.Node().Name, b.Node().Name) })
	refusals, status := pl.askForEachKind(ctx, state, s, pods, scheduled)
	if !status.IsSuccess() {
		return nil, status
	}
	// The scheduler counts pods that are terminating, too.
	s.least = 1
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		s.least = max(1, int(gang.MinCount)-placed.ScheduledPodsCount())
	}
	s.choose = pl.chooserFor(ctx, s, group)
	wanted := []int{len(pods)}
	if s.least < len(pods) {
		wanted = append(wanted, s.least)
		if _, joint := pl.joint.Get(group.UID); joint {
			pl.joint.Remove(group.UID)
			wanted = wanted[1:]
		} else if most := v1alpha1.MaxNodeSetSize * constraint.PodsPerNode; len(pods) > most && s.least <= most {
			wanted = wanted[1:]
		}
	}
	var reason string
	for _, count := range wanted {
		s.pods, s.more = pods[:count], 0
		choice, status := s.choose()
		if !status.IsSuccess() {
			return nil, status
		}
		if choice != nil {
			s.try(choice)
			return s, nil
		}
		if reason == "" {
			reason = s.problem.Reason(s.nodes, refusals) + pl.nearest(ctx, s)
		}
	}
	return nil, refused(fwk.Unschedulable, nodes, reason)
}

// problem is what is to be chosen for a group, and what was prepared of it. A group that is not compiled is refused.
func (pl *NodeSets) problem(ctx context.Context, s *groupSearch, of *nodeset.Group, group *schedulingapi.PodGroup) (*nodeset.Problem, *allocator.PreparedClaim, *fwk.Status) {
	problem, err := nodeset.NewProblem(of)
	if err != nil {
		return nil, nil, fwk.AsStatus(err)
	}
	prepared, err := pl.groups.compiled(ctx, problem)
	switch {
	case errors.Is(err, cel.ErrNotCompiled):
		return nil, nil, pl.notCompiled(s.pods[0], group, s.infos)
	case err != nil:
		return nil, nil, fwk.AsStatus(err)
	}
	return problem, prepared, nil
}

// refused is a status by which the group is found among those that this plugin refuses, so that events of others wake it.
func refused(code fwk.Code, nodes []fwk.NodeInfo, reason string) *fwk.Status {
	return fwk.NewStatus(code).WithError(&framework.FitError{NumAllNodes: len(nodes), Diagnosis: framework.Diagnosis{
		NodeToStatus: framework.NewDefaultNodeToStatus(), UnschedulablePlugins: sets.New(NodeSetsName), PreFilterMsg: reason,
	}})
}

// notCompiled refuses a group until it is compiled.
func (pl *NodeSets) notCompiled(pod *v1.Pod, group *schedulingapi.PodGroup, nodes []fwk.NodeInfo) *fwk.Status {
	pl.groups.own.Remove(wantOf(group))
	pl.await(pod, group)
	pl.metrics.ObserveRefusal(metrics.RefusalPreparing)
	return refused(fwk.UnschedulableAndUnresolvable, nodes, groupNotCompiled(group))
}

// over ends the search when its time is over.
func (s *groupSearch) over() *fwk.Status {
	s.attempt.Progress()
	err := s.attempt.Over()
	if err == nil {
		return nil
	}
	s.attempt.Failed(err)
	return refused(fwk.Unschedulable, s.infos, err.Error())
}

// chooserFor returns what chooses nodes for the pods of a search, among its nodes as they are then.
func (pl *NodeSets) chooserFor(ctx context.Context, s *groupSearch, group *schedulingapi.PodGroup) func() (*nodeset.Choice, *fwk.Status) {
	budget := allocator.NewAttemptBudget(allocator.DefaultCostBudget/10, allocator.DefaultStepBudget/10)
	s.attempt.OnOver(budget.End)
	once := func() (*nodeset.Choice, *fwk.Status) {
		problem, of, status := pl.problem(ctx, s, s.count(group), group)
		if !status.IsSuccess() {
			return nil, status
		}
		s.problem = problem
		if s.reading.Slices() && !s.hasSlices {
			if err := pl.addSlices(s); err != nil {
				return nil, fwk.AsStatus(err)
			}
		}
		choice, err := pl.groups.Choose(ctx, problem, of, s.nodes, allocator.WithAttemptBudget(budget))
		switch _, over := errors.AsType[*allocator.BudgetError](err); {
		case err == nil:
			return choice, s.over()
		case ctx.Err() != nil:
			return nil, fwk.AsStatus(err)
		case over:
			s.attempt.Failed(err)
		}
		return nil, refused(fwk.UnschedulableAndUnresolvable, s.infos, err.Error())
	}
	return func() (choice *nodeset.Choice, status *fwk.Status) {
		// With several pods on a node fewer nodes may do. The fewest are taken.
		for ; ; s.more++ {
			choice, status = once()
			if choice != nil || !status.IsSuccess() || s.constraint.PodsPerNode == 1 || s.more >= maxPlacements ||
				s.problem.Size() >= min(s.problem.Placed+len(s.pods), v1alpha1.MaxNodeSetSize) {
				return choice, status
			}
		}
	}
}

// count is how many nodes are wanted for each kind. With several pods on a node any node that takes one of them will do.
func (s *groupSearch) count(group *schedulingapi.PodGroup) *nodeset.Group {
	g := &nodeset.Group{Namespace: group.Namespace, Name: group.Name, Constraint: s.constraint, ReadsDevices: s.lists}
	for _, n := range s.nodes {
		if n.Placed {
			g.Placed++
		}
	}
	if s.constraint.PodsPerNode == 1 {
		for _, kind := range s.kinds {
			g.Kinds = append(g.Kinds, make([]int, max(0, kind+1-len(g.Kinds)))...)
		}
		for _, pod := range s.pods {
			g.Kinds[s.kinds[pod.UID]]++
		}
		return g
	}
	left := len(s.pods)
	for _, free := range s.seats {
		left -= free
	}
	g.Kinds = []int{min(len(s.pods), (max(0, left)+s.constraint.PodsPerNode-1)/s.constraint.PodsPerNode+s.more)}
	for i := range s.nodes {
		s.nodes[i].Takes = []bool{slices.Contains(s.nodes[i].Takes, true)}
	}
	for uid := range s.kinds {
		s.kinds[uid] = 0
	}
	return g
}

// nearest names the set that misses by least. It is empty if that can't be found out in the time that there is.
func (pl *NodeSets) nearest(ctx context.Context, s *groupSearch) string {
	timeout := s.attempt.Remaining(nearMissTimeout)
	if timeout <= 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	standing := func(node int) string {
		return nodeset.Standing(func(yield func(*v1.Pod) bool) {
			for _, pod := range s.infos[node].GetPods() {
				if !yield(pod.GetPod()) {
					return
				}
			}
		}, s.problem.Namespace)
	}
	return pl.groups.NearestMiss(ctx, s.problem, s.nodes, s.why, pl.groups.compiled, standing, allocator.WithStepBudget(nearMissSteps))
}

// addSlices adds to nodes the slices that are theirs alone.
func (pl *NodeSets) addSlices(s *groupSearch) error {
	all, err := pl.handle.SharedDRAManager().ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return err
	}
	of := map[string][]*resourceapi.ResourceSlice{}
	for _, slice := range all {
		if slice.Spec.NodeName != nil {
			of[*slice.Spec.NodeName] = append(of[*slice.Spec.NodeName], slice)
		}
	}
	for i := range s.nodes {
		s.nodes[i].Slices = of[s.nodes[i].Name]
	}
	s.hasSlices = true
	return nil
}
