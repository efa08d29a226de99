// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/topologyaware"
	"k8s.io/utils/lru"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// NodeSetsName is the name of the plugin [NodeSets] in scheduler configurations.
const NodeSetsName = "TopologyPlacementGeneratorCEL"

// NodeSets is upstream's plugin TopologyPlacementGenerator with one difference: for a PodGroup that refers to a
// CELNodeSetConstraint it generates the set of nodes that package nodeset chooses.
//
// Of the placements that a plugin generates the scheduler tries all, one after the other. So a set is chosen when a placement
// is tried: the first as it is generated, another one when a pod did not fit on the set before it, without the nodes on which
// that was found out. When the pods of the group have fitted on a set, the placements after it are refused.
//
// PreFilter holds the pods to the set, each to a node that was chosen for its kind. Without a set it refuses them, so that a
// scheduler that does not generate placements schedules none of them either.
type NodeSets struct {
	*topologyaware.TopologyPlacement
	handle fwk.Handle
	// runner runs PreFilter of all plugins.
	runner preFilterRunner
	// hasGroups: pods may have groups. enabled: the gate is on, too.
	hasGroups, enabled bool

	groups   *groups
	guard    *guard.Guard
	metrics  *metrics.Metrics
	activate func(*v1.Pod)
	// joint has the groups whose pods have not fitted on nodes that were chosen for all of them.
	joint *lru.Cache
}

// maxJoint is of how many groups that is remembered.
const maxJoint = 1024

var (
	_ fwk.PlacementGeneratePlugin = &NodeSets{}
	_ fwk.PreEnqueuePlugin        = &NodeSets{}
	_ fwk.PreFilterPlugin         = &NodeSets{}
	_ fwk.ReservePlugin           = &NodeSets{}
	_ fwk.EnqueueExtensions       = &NodeSets{}
	_ fwk.SignPlugin              = &NodeSets{}
)

type preFilterRunner interface {
	RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string])
}

const (
	// groupTimeout is how long choosing nodes for a group may take while pods of other namespaces wait.
	groupTimeout = time.Second
	// maxPlacements is how many sets are tried in a cycle.
	maxPlacements = 16
)

func newNodeSets(ctx context.Context, args runtime.Object, handle fwk.Handle, features plfeature.Features, measured *metrics.Metrics, shared *profiles) (*NodeSets, error) {
	if args != nil {
		return nil, fmt.Errorf("%s: it takes no arguments: remove its pluginConfig", NodeSetsName)
	}
	upstream, err := topologyaware.New(ctx, nil, handle, features)
	if err != nil {
		return nil, err
	}
	pl := &NodeSets{
		TopologyPlacement: upstream, handle: handle, hasGroups: features.EnableGenericWorkload,
		enabled: features.EnableGenericWorkload && shared.gates.Enabled(DRACELGangConstraints),
		guard:   shared.guard, metrics: measured, activate: activator(ctx, handle), joint: lru.New(maxJoint),
	}
	if !pl.enabled {
		return pl, nil
	}
	runner, ok := handle.(preFilterRunner)
	if !ok {
		return nil, incompatible("the framework's handle can't run PreFilter plugins")
	}
	pl.runner = runner
	pl.groups, err = shared.groupsOf(ctx, measured, handle)
	return pl, err
}

// Name returns [NodeSetsName].
func (pl *NodeSets) Name() string { return NodeSetsName }

// SignPod implements [fwk.SignPlugin]. Where a pod goes for whose group nodes are chosen is no matter of pods that are alike.
func (pl *NodeSets) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if !pl.hasGroups {
		return nil, nil
	}
	if _, _, ok := pl.reference(pod, pl.handle.PodGroupManager().PodGroups()); ok {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	return nil, nil
}

// reference is what the group of the pod refers to.
func (pl *NodeSets) reference(pod *v1.Pod, groups fwk.PodGroupLister) (group *schedulingapi.PodGroup, name string, ok bool) {
	if !pl.hasGroups || pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return nil, "", false
	}
	group, err := groups.Get(pod.Namespace, *pod.Spec.SchedulingGroup.PodGroupName)
	if err != nil {
		return nil, "", false
	}
	name, ok = v1alpha1.NodeSetReference(group)
	return group, name, ok
}

// groupSearch is what a scheduling cycle of a group has found out. It is used by one goroutine.
type groupSearch struct {
	problem *nodeset.Problem
	// reading is what the expressions read. lists: they may read what devices pods get, of which lists are made.
	reading *nodeset.Reading
	lists   bool
	listed  atomic.Int64
	// pods are those for which nodes are chosen. order has the place of each pod of the group in the order in which they are
	// tried, kinds its kind.
	pods         []*v1.Pod
	order, kinds map[types.UID]int
	// nodes are the nodes as the search knows them, why is what was wrong with each for a pod, "" if nothing was.
	nodes []nodeset.Node
	infos []fwk.NodeInfo
	why   []string
	// seats has for nodes on which pods of the group run how many more may.
	seats map[string]int
	// choose chooses among the nodes as they are now, more nodes than are needed if each takes as many pods as it may.
	choose     func() (*nodeset.Choice, *fwk.Status)
	more       int
	hasSlices  bool
	constraint *v1alpha1.NodeSetConstraint
	attempt    *guard.Attempt
	// least is with how many pods the scheduler takes the group for placed.
	least int
	// tried is the placement that is being tried, placements is how many were before.
	tried      *triedSet
	placements int
	// uid is that of the group.
	uid types.UID
}

// Clone implements [fwk.StateData].
func (s *groupSearch) Clone() fwk.StateData { return s }

const groupSearchKey fwk.StateKey = NodeSetsName

// triedSet is a set of nodes on which the pods of the group are tried.
type triedSet struct {
	// of is the state of the placement.
	of fwk.PlacementCycleState
	// free has for each kind of pods, and for a node, how many pods may go there.
	free []map[string]int
	// sets has for each kind, and for a node, what a pod gets there, if expressions read that.
	sets []map[string]*nodeset.Set
	// on is where pods are reserved.
	on map[types.UID]string
	// wanted is how many pods the set is for. complete: so many have fitted.
	wanted   int
	complete bool
	// asked is the kind of the pod that was last asked for, left are the nodes that were left for it, nil when it has fitted.
	asked int
	left  sets.Set[string]
	// most is how many pods were reserved at the same time.
	most int
	// err is why there is no set.
	err string
}

// Clone implements [fwk.StateData].
func (t *triedSet) Clone() fwk.StateData { return t }

const triedSetKey fwk.StateKey = NodeSetsName + "/set"

func groupSearchIn(state fwk.CycleState) *groupSearch {
	if state.GetPodGroupSchedulingCycle() == nil {
		return nil
	}
	data, err := state.GetPodGroupSchedulingCycle().Read(groupSearchKey)
	if err != nil {
		return nil
	}
	s, _ := data.(*groupSearch)
	return s
}

// PreFilter leaves a pod of a group with a node set constraint the nodes that were chosen for pods like it.
func (pl *NodeSets) PreFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if _, _, ok := pl.reference(pod, pl.handle.SnapshotSharedLister().PodGroups()); !ok || askedAloneIn(state) != nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	s := groupSearchIn(state)
	if s == nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			"the pod's group has a node set constraint, and no nodes were chosen for it: enable the feature gates GenericWorkload, TopologyAwareWorkloadScheduling and DRACELGangConstraints")
	}
	placement := state.GetPlacementCycleState()
	if s.tried.of == nil {
		s.tried.of = placement
	}
	// Pods are tried in their order: all before this one have fitted, or one has not.
	isNew, order := s.tried.of != placement, min(s.order[pod.UID], s.tried.wanted)
	hasFailed := isNew && !s.tried.complete || !isNew && order > len(s.tried.on)
	switch {
	case hasFailed && s.tried.most >= s.least:
		// The scheduler takes the group for placed: only an error makes it give that up.
		pl.joint.Add(s.uid, nil)
		return nil, fwk.AsStatus(fmt.Errorf("not all of %d pods of the group have fitted on the nodes that were chosen for them: nodes are chosen for %d", s.tried.wanted, s.least))
	case hasFailed && !isNew:
		return nil, fwk.NewStatus(fwk.Unschedulable, "another pod of the group does not fit on the nodes that were chosen for it")
	case isNew && !hasFailed:
		return nil, fwk.NewStatus(fwk.Unschedulable, "the group fits on another set of nodes")
	case isNew:
		if s.placements++; s.placements == maxPlacements {
			return nil, fwk.NewStatus(fwk.Unschedulable, noOtherSet)
		}
		s.next(placement)
	}
	t := s.tried
	state.Write(triedSetKey, t)
	if t.err != "" {
		return nil, fwk.NewStatus(fwk.Unschedulable, t.err)
	}
	kind, ok := s.kinds[pod.UID]
	names := sets.New[string]()
	if ok {
		for name, free := range t.free[kind] {
			if free > 0 {
				names.Insert(name)
			}
		}
	}
	if len(names) == 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("no node of the set that was chosen for the group is left: it is for %d pods", t.wanted))
	}
	t.asked, t.left = kind, names
	return &fwk.PreFilterResult{NodeNames: names}, nil
}

// PreFilterExtensions implements [fwk.PreFilterPlugin].
func (pl *NodeSets) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

const noOtherSet = "no other set of nodes satisfies the constraint"

// next chooses another set, without the nodes that were left for the pod that did not fit.
func (s *groupSearch) next(of fwk.PlacementCycleState) {
	before := s.tried
	s.tried = &triedSet{of: of}
	if len(before.left) == 0 {
		s.tried.err = cmp.Or(before.err, noOtherSet)
		return
	}
	if s.constraint.PodsPerNode > 1 && s.problem.Size() < s.problem.Placed+len(s.pods) {
		// A node may take fewer pods than it may have.
		s.more++
	} else {
		for i := range s.nodes {
			if n := &s.nodes[i]; before.left.Has(n.Name) {
				n.Takes[before.asked] = false
				delete(s.seats, n.Name)
			}
		}
	}
	choice, status := s.choose()
	switch {
	case !status.IsSuccess():
		s.tried.err = status.Message()
	case choice == nil:
		s.tried.err = noOtherSet
	default:
		s.try(choice)
		s.tried.of = of
	}
}

// try has the pods tried on a set.
func (s *groupSearch) try(choice *nodeset.Choice) {
	t := &triedSet{wanted: len(s.pods), on: map[types.UID]string{}, free: make([]map[string]int, len(s.problem.Kinds))}
	for kind, nodes := range choice.Kinds {
		t.free[kind] = maps.Clone(s.seats)
		for _, i := range nodes {
			t.free[kind][s.nodes[i].Name] = s.problem.Constraint.PodsPerNode
		}
	}
	if s.lists {
		t.sets = make([]map[string]*nodeset.Set, len(choice.Kinds))
		for kind, nodes := range choice.Kinds {
			t.sets[kind] = map[string]*nodeset.Set{}
			for at, i := range nodes {
				t.sets[kind][s.nodes[i].Name] = &s.nodes[i].Sets[kind][choice.Sets[kind][at]]
			}
		}
	}
	s.tried = t
}

// Reserve notes where a pod fits. What the scheduler binds is a complete set.
func (pl *NodeSets) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	data, err := state.Read(triedSetKey)
	if err != nil {
		return nil
	}
	t := data.(*triedSet)
	s := groupSearchIn(state)
	switch {
	case s != nil:
		t.free[s.kinds[pod.UID]][node]--
		t.on[pod.UID] = node
		t.left = nil
		t.most = max(t.most, len(t.on))
		t.complete = t.complete || len(t.on) == t.wanted
	case !t.complete:
		return fwk.NewStatus(fwk.Unschedulable, noOtherSet)
	}
	return nil
}

// Unreserve implements [fwk.ReservePlugin].
func (pl *NodeSets) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	data, err := state.Read(triedSetKey)
	s := groupSearchIn(state)
	if err != nil || s == nil {
		return
	}
	t := data.(*triedSet)
	if node, reserved := t.on[pod.UID]; reserved {
		delete(t.on, pod.UID)
		t.free[s.kinds[pod.UID]][node]++
	}
}

// GeneratePlacements returns the set of nodes for a group that refers to a node set constraint, and asks upstream's plugin for
// others.
func (pl *NodeSets) GeneratePlacements(ctx context.Context, state fwk.PodGroupCycleState, info fwk.PodGroupInfo, parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	group := info.GetPodGroup()
	name, ok := v1alpha1.NodeSetReference(group)
	if composite := info.GetCompositePodGroup(); composite != nil && composite.Spec.SchedulingConstraints != nil {
		for _, topology := range composite.Spec.SchedulingConstraints.Topology {
			if strings.HasPrefix(topology.Key, v1alpha1.AttributeDomain+"/") {
				return nil, refused(fwk.UnschedulableAndUnresolvable, parent.Nodes, fmt.Sprintf(
					"CompositePodGroup %s has the topology key %s, but a node set constraint is over the nodes of one PodGroup: make it the topology key of PodGroups", klog.KObj(composite), topology.Key))
			}
		}
	}
	if !ok {
		return pl.TopologyPlacement.GeneratePlacements(ctx, state, info, parent)
	}
	if !pl.enabled {
		return nil, refused(fwk.UnschedulableAndUnresolvable, parent.Nodes, fmt.Sprintf("PodGroup %s has the node set constraint %s, but the feature gate %s is disabled: enable it with --feature-gates=%s=true",
			klog.KObj(group), name, DRACELGangConstraints, DRACELGangConstraints))
	}
	pods := info.GetUnscheduledPods()
	if gang := group.Spec.SchedulingPolicy.Gang; len(pods) == 0 || gang != nil && len(pods)+pl.scheduledCount(group) < int(gang.MinCount) {
		// The scheduler does not try the pods.
		return &fwk.GeneratePlacementsResult{Placements: []*fwk.Placement{parent}}, nil
	}
	attempt, refusal := pl.guard.Admit(guard.Request{Pod: pods[0], Claims: []types.UID{group.UID}, Timeout: groupTimeout, Activate: pl.activate})
	if refusal != nil {
		pl.metrics.ObserveRefusal(metrics.Refusal(refusal.Reason))
		return nil, refused(fwk.UnschedulableAndUnresolvable, parent.Nodes, refusal.Message)
	}
	defer attempt.Progress()
	end := pl.metrics.ObserveNodeSet()
	search, status := pl.search(ctx, state, group, name, pods, parent.Nodes, attempt)
	failure := cmp.Or(ctx.Err(), attempt.Over())
	if failure == nil && status.Code() != fwk.Unschedulable {
		failure = status.AsError()
	}
	end(search != nil, failure)
	if !status.IsSuccess() {
		return nil, status
	}
	attempt.Succeeded()
	search.uid = group.UID
	state.Write(groupSearchKey, search)
	first := &fwk.Placement{Name: v1alpha1.AttributeDomain + "/" + name, Nodes: search.chosen()}
	placements := []*fwk.Placement{first}
	for i := 2; i <= maxPlacements; i++ {
		placements = append(placements, &fwk.Placement{Name: fmt.Sprintf("%s#%d", first.Name, i), Nodes: search.infos})
	}
	return &fwk.GeneratePlacementsResult{Placements: placements}, nil
}

// scheduledCount is how many pods of the group have a node.
func (pl *NodeSets) scheduledCount(group *schedulingapi.PodGroup) int {
	state, err := pl.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return 0
	}
	return state.ScheduledPodsCount()
}

// chosen are the nodes of the set that is tried.
func (s *groupSearch) chosen() []fwk.NodeInfo {
	return slices.DeleteFunc(slices.Clone(s.infos), func(info fwk.NodeInfo) bool {
		return !slices.ContainsFunc(s.tried.free, func(free map[string]int) bool { return free[info.Node().Name] > 0 })
	})
}

// EventsToRegister implements [fwk.EnqueueExtensions]. A node that can't take a pod of the group may be able to after
// whatever any plugin waits for.
func (pl *NodeSets) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	var events []fwk.ClusterEventWithHint
	for _, resource := range []fwk.EventResource{
		fwk.Node, fwk.AssignedPod, fwk.ResourceClaim, fwk.ResourceSlice, fwk.DeviceClass, fwk.PodGroup, fwk.PersistentVolume,
		fwk.PersistentVolumeClaim, fwk.StorageClass, fwk.CSINode, fwk.CSIDriver, fwk.CSIStorageCapacity, fwk.VolumeAttachment,
	} {
		events = append(events, fwk.ClusterEventWithHint{Event: fwk.ClusterEvent{Resource: resource, ActionType: fwk.All}})
	}
	return events, nil
}
