// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
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
	"github.com/celset/celset/plugin/preparation"
)

// Name is the name of the plugin [NodeSets] in scheduler configurations.
const Name = "TopologyPlacementGeneratorCEL"

// NodeSets extends upstream's plugin TopologyPlacementGenerator. For a PodGroup that refers to a CELNodeSetConstraint, it lets
// package nodeset choose a set of nodes.
//
// The scheduler tries the generated placements one after the other, in an order of its own, and may skip some. So all
// placements contain the same nodes, and PreFilter restricts each pod to a node of the chosen set. The first set is chosen when
// the placements are generated. If a pod does not fit, the next placement gets another set, which does not put the same pods on
// the same node again. Once the pods of the group have fitted on a set, PreFilter refuses them in the remaining placements.
//
// If no set was chosen, PreFilter refuses the pods. So a scheduler that generates no placements doesn't schedule these pods.
type NodeSets struct {
	*topologyaware.TopologyPlacement
	handle fwk.Handle
	// slices lists the ResourceSlices with the attributes of DeviceAttributes objects.
	slices fwk.ResourceSliceLister
	// runner runs the PreFilter methods of all plugins of the profile.
	runner preFilterRunner
	// hasGroups is set if the features for pod groups are on. enabled is set if the gate of node set constraints is on, too.
	hasGroups, enabled bool

	groups *Groups
	// prepared looks up the compiled constraints of groups.
	prepared preparation.Ahead
	turns    guard.Turns
	metrics  *metrics.Metrics
	// onlyLeast has the UIDs of groups whose pods did not all fit on a chosen set. The next search for such a group chooses nodes
	// only for the minimum number of pods.
	onlyLeast  *lru.Cache
	conditions *conditions
}

// maxOnlyLeast is the maximum number of groups in onlyLeast.
const maxOnlyLeast = 1024

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
	// groupTimeout is the time limit of the search for one group while pods of other namespaces wait.
	groupTimeout = time.Second
	// maxPlacements is the maximum number of node sets tried for a group in one cycle.
	maxPlacements = 16
)

// Config holds the parts of the scheduler that New needs.
type Config struct {
	Features plfeature.Features
	// Enabled is the feature gate of node set constraints.
	Enabled bool
	Metrics *metrics.Metrics
	Turns   guard.Turns
	// Slices lists the ResourceSlices with the attributes of DeviceAttributes objects.
	Slices fwk.ResourceSliceLister
	// Activate moves a pod to the active queue.
	Activate func(*v1.Pod)
	// Groups returns the compiled node set constraints that all profiles share.
	Groups func(context.Context, *metrics.Metrics, fwk.Handle) (*Groups, error)
}

// New returns the plugin of one profile.
func New(ctx context.Context, args runtime.Object, handle fwk.Handle, config Config) (*NodeSets, error) {
	if args != nil {
		return nil, fmt.Errorf("%s: the plugin takes no arguments: remove its entry from pluginConfig", Name)
	}
	upstream, err := topologyaware.New(ctx, nil, handle, config.Features)
	if err != nil {
		return nil, err
	}
	pl := &NodeSets{
		TopologyPlacement: upstream, handle: handle, slices: config.Slices, hasGroups: config.Features.EnableGenericWorkload, enabled: config.Features.EnableGenericWorkload && config.Enabled,
		turns: config.Turns, metrics: config.Metrics, onlyLeast: lru.New(maxOnlyLeast),
	}
	if !pl.enabled {
		return pl, nil
	}
	runner, ok := handle.(preFilterRunner)
	if !ok {
		return nil, errors.New("the framework's handle can't run PreFilter plugins: build celset with the version of Kubernetes that go.mod names")
	}
	pl.runner = runner
	if pl.groups, err = config.Groups(ctx, config.Metrics, handle); err != nil {
		return nil, err
	}
	pl.conditions = newConditions(handle.ClientSet())
	pl.conditions.start(ctx)
	pl.prepared = preparation.Ahead{
		View: preparation.View{Store: pl.groups.preparing, Constraints: true}, Background: pl.groups.background, Activate: config.Activate,
	}
	return pl, nil
}

// Name returns [Name].
func (pl *NodeSets) Name() string { return Name }

// SignPod implements [fwk.SignPlugin]. Pods of a group with a node set constraint are placed as a group. They must not share a
// scheduling signature with other pods.
func (pl *NodeSets) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if !pl.hasGroups {
		return nil, nil
	}
	if _, _, ok := pl.reference(pod, pl.handle.PodGroupManager().PodGroups()); ok {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	return nil, nil
}

// reference returns the pod's group and the node set constraint that the group refers to.
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

// groupSearch is the search for the nodes of a group in one scheduling cycle. Only one goroutine uses it.
type groupSearch struct {
	*nodeset.Search
	hosts *groupHosts
	begun
	reads   *nodeset.Reading
	attempt *guard.Attempt
	// pods holds the group's pods to place, in the order of the scheduler's attempts.
	pods []*v1.Pod
	// infos holds the candidate nodes in the order of Search.Nodes. why[i] is the reason why infos[i] can't take a pod of the
	// group, or "".
	infos []fwk.NodeInfo
	why   []string
	// choose chooses a set from the nodes that are not forbidden. It returns nil if no set satisfies the constraint.
	choose func() (*groupChoice, *fwk.Status)
	// least is the number of pods that must be placed in this cycle so that the scheduler accepts the group.
	least int
	// tried is the current set. placements counts the placements that were tried before this one in the cycle.
	tried      *triedSet
	placements int
}

// begun is the group of a search, and the time at which the search began.
type begun struct {
	group *schedulingapi.PodGroup
	begin time.Time
}

// Clone implements [fwk.StateData].
func (s *groupSearch) Clone() fwk.StateData { return s }

const groupSearchKey fwk.StateKey = Name

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

// PreFilter restricts a pod of a group with a node set constraint to its assigned node.
func (pl *NodeSets) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if _, _, ok := pl.reference(pod, pl.handle.SnapshotSharedLister().PodGroups()); !ok || askedAloneIn(state) != nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	s := groupSearchIn(state)
	if s == nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			"the pod's group has a node set constraint, but the scheduler chose no nodes for the group: enable the feature gates GenericWorkload, TopologyAwareWorkloadScheduling and CelsetNodeSetConstraint")
	}
	placement := state.GetPlacementCycleState()
	if s.tried.of == nil {
		s.tried.of = placement
	}
	isNew := s.tried.of != placement
	hasFailed := isNew && !s.tried.isComplete() || !isNew && s.tried.hasFailedBefore(pod)
	switch {
	case hasFailed && s.tried.most >= s.least:
		// The scheduler already accepts the placed pods as a group. Only an error makes it discard the placement.
		pl.onlyLeast.Add(s.group.UID, nil)
		return nil, fwk.AsStatus(fmt.Errorf("the %d pods of the group do not all fit on the nodes that were chosen for them: the next attempt chooses nodes for %d pods", s.tried.wanted, s.least))
	case hasFailed && !isNew:
		return nil, fwk.NewStatus(fwk.Unschedulable, "another pod of the group does not fit on the nodes that were chosen for it")
	case isNew && !hasFailed:
		return nil, fwk.NewStatus(fwk.Unschedulable, "the group fits on another set of nodes")
	case isNew:
		if s.placements++; s.placements == maxPlacements {
			pl.noneFits(s, s.tried.asked)
			return nil, fwk.NewStatus(fwk.Unschedulable, noOtherSet)
		}
		failed := s.tried.asked
		if s.next(ctx, placement); s.tried.err == noOtherSet {
			pl.noneFits(s, failed)
		}
	}
	state.Write(triedSetKey, s.tried)
	if s.tried.err != "" {
		return nil, fwk.NewStatus(fwk.Unschedulable, s.tried.err)
	}
	node, ok := s.tried.ask(pod)
	if !ok {
		return nil, fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("the scheduler chose nodes for %d of the %d pods of the group: it tries this pod again when those pods run", s.tried.wanted, len(s.pods)))
	}
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
}

// PreFilterExtensions implements [fwk.PreFilterPlugin].
func (pl *NodeSets) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

const noOtherSet = "no other set of nodes satisfies the constraint"

// Reserve records that a pod fits on its node. When the pod is reserved again for binding, Reserve refuses it unless all
// assigned pods of the set have fitted.
func (pl *NodeSets) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) *fwk.Status {
	t, ok := triedSetIn(state)
	switch {
	case !ok:
	case groupSearchIn(state) != nil:
		t.fits(pod)
	case !t.complete:
		return fwk.NewStatus(fwk.Unschedulable, noOtherSet)
	default:
		pl.available(t.group)
	}
	return nil
}

// Unreserve implements [fwk.ReservePlugin].
func (pl *NodeSets) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	if t, ok := triedSetIn(state); ok && groupSearchIn(state) != nil {
		t.on.Delete(pod.UID)
	}
}

// GeneratePlacements returns placements for a group that refers to a node set constraint. It calls upstream's plugin for other
// groups.
func (pl *NodeSets) GeneratePlacements(ctx context.Context, state fwk.PodGroupCycleState, info fwk.PodGroupInfo, parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	group := info.GetPodGroup()
	name, ok := v1alpha1.NodeSetReference(group)
	if composite := info.GetCompositePodGroup(); composite != nil && composite.Spec.SchedulingConstraints != nil {
		for _, topology := range composite.Spec.SchedulingConstraints.Topology {
			if strings.HasPrefix(topology.Key, v1alpha1.AttributeDomain+"/") {
				return nil, refused(fwk.UnschedulableAndUnresolvable, parent.Nodes, fmt.Sprintf(
					"CompositePodGroup %s has the topology key %s, but a node set constraint applies to one PodGroup: set the key in the PodGroups instead", klog.KObj(composite), topology.Key))
			}
		}
	}
	if !ok {
		return pl.TopologyPlacement.GeneratePlacements(ctx, state, info, parent)
	}
	if !pl.enabled {
		return nil, refused(fwk.UnschedulableAndUnresolvable, parent.Nodes, fmt.Sprintf("PodGroup %s has the node set constraint %s, but the feature gate %s is disabled: enable it with --feature-gates=%s=true",
			klog.KObj(group), name, v1alpha1.NodeSetFeatureGate, v1alpha1.NodeSetFeatureGate))
	}
	pods := info.GetUnscheduledPods()
	if gang := group.Spec.SchedulingPolicy.Gang; len(pods) == 0 || gang != nil && len(pods)+pl.scheduledCount(group) < int(gang.MinCount) {
		// The gang has fewer pods than its minCount, so the scheduler will not try them.
		return &fwk.GeneratePlacementsResult{Placements: []*fwk.Placement{parent}}, nil
	}
	attempt, refusal := pl.turns.Admit(guard.Request{Pod: pods[0], Claims: []types.UID{group.UID}, Timeout: groupTimeout, Activate: pl.prepared.Activate})
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
	state.Write(groupSearchKey, search)
	return &fwk.GeneratePlacementsResult{Placements: search.generate(name)}, nil
}

// scheduledCount returns the number of pods of the group that are assigned to a node.
func (pl *NodeSets) scheduledCount(group *schedulingapi.PodGroup) int {
	state, err := pl.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return 0
	}
	return state.ScheduledPodsCount()
}

// EventsToRegister implements [fwk.EnqueueExtensions]. It returns all events after which any filter may accept a node.
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
