// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// AttemptIn returns the attempt of the group whose cycle the state belongs to. It returns nil if the pod is not placed by
// NodeSets.
func AttemptIn(state fwk.CycleState) *guard.Attempt {
	if alone := askedAloneIn(state); alone != nil {
		return alone.attempt
	}
	if s := groupSearchIn(state); s != nil {
		return s.attempt
	}
	return nil
}

// maxGroupPods is the maximum number of pods of a group that one cycle places.
const maxGroupPods = 1024

// search chooses the first set of nodes for the pods of a group.
//
//  1. newSearch finds the constraint and its compiled form.
//  2. askForEachKind runs the filters for one pod of each kind.
//  3. nodeset.Search chooses nodes and the number of pods on each. It calls groupHosts to test several pods on a node.
//  4. try assigns the pods. PreFilter then restricts each pod to its node.
func (pl *NodeSets) search(ctx context.Context, state fwk.PodGroupCycleState, group *schedulingapi.PodGroup, name string, pods []*v1.Pod, nodes []fwk.NodeInfo, attempt *guard.Attempt) (*groupSearch, *fwk.Status) {
	begin := time.Now()
	placed, err := pl.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	scheduled := slices.DeleteFunc(slices.Clone(placed.ScheduledPods()), func(pod *v1.Pod) bool { return pod.DeletionTimestamp != nil })
	s, status := pl.newSearch(ctx, group, name, pods, scheduled, nodes)
	if !status.IsSuccess() {
		return nil, status
	}
	s.attempt, s.begin = attempt, begin
	// The scheduler counts terminating pods of the group for its minCount, so least counts them, too.
	s.least = 1
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		s.least = max(1, int(gang.MinCount)-placed.ScheduledPodsCount())
	}
	s.Least = min(s.least, len(pods))
	if _, joint := pl.onlyLeast.Get(group.UID); joint {
		pl.onlyLeast.Remove(group.UID)
		s.OnlyLeast = true
	}
	refusals, status := pl.askForEachKind(ctx, state, s, scheduled)
	if !status.IsSuccess() {
		return nil, status
	}
	var budget *allocator.AttemptBudget
	s.Options, budget = nodeset.Limits()
	s.attempt.OnOver(budget.End)
	s.choose = func() (*groupChoice, *fwk.Status) { return pl.choose(ctx, s, group) }
	choice, status := s.choose()
	switch {
	case !status.IsSuccess():
		return nil, status
	case choice == nil:
		why := s.Reason(refusals) + pl.nearest(ctx, s)
		pl.unavailable(s, wellknown.ReasonNoNodeSet, why)
		return nil, refused(fwk.Unschedulable, nodes, why)
	}
	s.try(ctx, choice)
	return s, nil
}

// newSearch returns a search with the group's constraint and its compiled form.
func (pl *NodeSets) newSearch(ctx context.Context, group *schedulingapi.PodGroup, name string, pods, scheduled []*v1.Pod, nodes []fwk.NodeInfo) (*groupSearch, *fwk.Status) {
	unresolvable := func(err error) (*groupSearch, *fwk.Status) {
		pl.metrics.ObserveRefusal(metrics.RefusalConstraint)
		return nil, refused(fwk.UnschedulableAndUnresolvable, nodes, err.Error())
	}
	invalid := func(err error) (*groupSearch, *fwk.Status) {
		pl.misconfigured(group, wellknown.ReasonInvalidConstraint, err)
		return unresolvable(err)
	}
	if len(pods) > maxGroupPods {
		return unresolvable(fmt.Errorf("PodGroup %s/%s has %d pods to place, but at most %d can be placed together: split the group", group.Namespace, group.Name, len(pods), maxGroupPods))
	}
	known, ok := pl.groups.own.Get(wantOf(group))
	if !ok {
		return nil, pl.notCompiled(pods[0], group, nodes)
	}
	own := known.(*ownConstraint)
	if own.err != nil {
		return invalid(own.err)
	}
	constraint, err := v1alpha1.ResolveNodeSet(group, own.constraint, name, claimsOfPods(pl.handle, slices.Concat(pods, scheduled)), pl.handle.SharedDRAManager().DeviceClasses())
	if err != nil {
		return invalid(err)
	}
	s := &groupSearch{begun: begun{group: group}, infos: slices.Clone(nodes), pods: pods}
	slices.SortFunc(s.infos, func(a, b fwk.NodeInfo) int { return cmp.Compare(a.Node().Name, b.Node().Name) })
	s.Search = &nodeset.Search{Chooser: pl.groups.Chooser, Compiled: pl.compiled, Group: &nodeset.Group{Namespace: group.Namespace, Name: group.Name, Constraint: constraint}}
	s.hosts = &groupHosts{pl: pl, search: s, kindOf: map[types.UID]int{}, shared: sharedClaims(pl.handle, pods)}
	s.Hosts = s.hosts
	problem, err := nodeset.NewProblem(s.Group, 0, 1)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	prepared, err := pl.compiled(ctx, problem)
	switch {
	case errors.Is(err, cel.ErrNotCompiled):
		return nil, pl.notCompiled(pods[0], group, nodes)
	case err != nil:
		return nil, fwk.AsStatus(err)
	}
	s.reads = nodeset.ReadingOf(prepared)
	if err := s.Read(s.reads); err != nil {
		return invalid(err)
	}
	if shared := s.hosts.shared; s.ReadsDevices && len(shared) > 0 {
		return invalid(fmt.Errorf("ResourceClaim %s/%s is used by several pods of PodGroup %s, but constraint %s/%s reads the devices of each pod: use a ResourceClaimTemplate",
			group.Namespace, slices.Min(shared.UnsortedList()), group.Name, v1alpha1.AttributeDomain, constraint.Name))
	}
	return s, nil
}

// choose chooses nodes for the pods, and devices if several of the pods could get the same devices.
func (pl *NodeSets) choose(ctx context.Context, s *groupSearch, group *schedulingapi.PodGroup) (*groupChoice, *fwk.Status) {
	choice, err := s.Choose(ctx)
	_, overBudget := errors.AsType[*allocator.BudgetError](err)
	_, overtime := errors.AsType[*guard.OvertimeError](err)
	switch {
	case errors.Is(err, cel.ErrNotCompiled):
		return nil, pl.notCompiled(s.pods[0], group, s.infos)
	case ctx.Err() != nil:
		return nil, fwk.AsStatus(cmp.Or(err, ctx.Err()))
	case overBudget || overtime:
		s.attempt.Failed(err)
		pl.unavailable(s, wellknown.ReasonSearchLimitExceeded, err.Error())
	}
	if reason := reasonOf(err); reason != "" {
		pl.misconfigured(group, reason, err)
	}
	if err != nil {
		return nil, refused(fwk.UnschedulableAndUnresolvable, s.infos, err.Error())
	}
	pl.accepted(group)
	if status := s.over(); !status.IsSuccess() || choice == nil {
		return nil, status
	}
	devices, err := s.hosts.devices(ctx, choice)
	if err != nil {
		return nil, refused(fwk.UnschedulableAndUnresolvable, s.infos, err.Error())
	}
	return &groupChoice{choice, devices}, nil
}

// refused returns a status that names this plugin as the cause, so that the events of this plugin retry the group.
func refused(code fwk.Code, nodes []fwk.NodeInfo, reason string) *fwk.Status {
	return fwk.NewStatus(code).WithError(&framework.FitError{NumAllNodes: len(nodes), Diagnosis: framework.Diagnosis{
		NodeToStatus: framework.NewDefaultNodeToStatus(), UnschedulablePlugins: sets.New(Name), PreFilterMsg: reason,
	}})
}

// notCompiled requests the compilation of a group's constraint, and returns the status that refuses the group until then.
func (pl *NodeSets) notCompiled(pod *v1.Pod, group *schedulingapi.PodGroup, nodes []fwk.NodeInfo) *fwk.Status {
	pl.groups.own.Remove(wantOf(group))
	pl.await(pod, group)
	pl.metrics.ObserveRefusal(metrics.RefusalPreparing)
	return refused(fwk.UnschedulableAndUnresolvable, nodes, groupNotCompiled(group))
}

// over returns a status that refuses the group if the time of its attempt is over.
func (s *groupSearch) over() *fwk.Status {
	s.attempt.Progress()
	err := s.attempt.Over()
	if err == nil {
		return nil
	}
	s.attempt.Failed(err)
	return refused(fwk.Unschedulable, s.infos, err.Error())
}

const (
	// nearMissTimeout and nearMissSteps limit the search for an explanation, so that a waiting group doesn't delay other pods.
	nearMissTimeout = 200 * time.Millisecond
	nearMissSteps   = 20_000
)

// nearest describes the set of nodes that comes closest to satisfying the constraint. It returns "" if the time is over first.
func (pl *NodeSets) nearest(ctx context.Context, s *groupSearch) string {
	timeout := s.attempt.Remaining(nearMissTimeout)
	if timeout <= 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	runningPods := func(node int) string {
		return nodeset.Standing(func(yield func(*v1.Pod) bool) {
			for _, pod := range s.infos[node].GetPods() {
				if !yield(pod.GetPod()) {
					return
				}
			}
		}, s.Namespace)
	}
	return s.NearestMiss(ctx, s.why, runningPods, allocator.WithStepBudget(nearMissSteps))
}

// addSlices gives each node of the search its node-local ResourceSlices.
func (pl *NodeSets) addSlices(s *groupSearch) error {
	all, err := pl.slices.ListWithDeviceTaintRules()
	if err != nil {
		return err
	}
	of := map[string][]*resourceapi.ResourceSlice{}
	for _, slice := range all {
		if slice.Spec.NodeName != nil {
			of[*slice.Spec.NodeName] = append(of[*slice.Spec.NodeName], slice)
		}
	}
	for i := range s.Nodes {
		s.Nodes[i].Slices = of[s.Nodes[i].Name]
	}
	return nil
}
