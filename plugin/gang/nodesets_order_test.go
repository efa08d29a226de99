// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/lru"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/plugintest"
)

// groupOnly is a scheduler handle with one PodGroup.
type groupOnly struct {
	fwk.Handle
	fwk.SharedLister
	group *schedulingapi.PodGroup
}

func (g groupOnly) SnapshotSharedLister() fwk.SharedLister { return g }
func (g groupOnly) PodGroups() fwk.PodGroupLister          { return g }
func (g groupOnly) Get(_, _ string) (*schedulingapi.PodGroup, error) {
	return g.group, nil
}

// orderCase has a group of two pods that needs two nodes of the same rack. There are five racks of two nodes each. The search
// expects that all nodes can take a pod, but the nodes in refuse take none.
type orderCase struct {
	pl     *NodeSets
	pods   []*v1.Pod
	refuse []string
	// feasible is the number of placements with fitting pods after which the scheduler stops.
	feasible int
}

func newOrderCase(refuse ...string) *orderCase {
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "group"}}
	group.Spec.SchedulingPolicy.Gang = &schedulingapi.GangSchedulingPolicy{MinCount: 2}
	group.Spec.SchedulingConstraints = &schedulingapi.PodGroupSchedulingConstraints{Topology: []schedulingapi.TopologyConstraint{{Key: v1alpha1.AttributeDomain + "/one_rack"}}}
	c := &orderCase{pl: &NodeSets{hasGroups: true, enabled: true, handle: groupOnly{group: group}, onlyLeast: lru.New(1), conditions: newConditions(nil)}, refuse: refuse, feasible: maxPlacements}
	for i := range 2 {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%d", i), UID: types.UID(fmt.Sprint(i))}}
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group.Name}
		c.pods = append(c.pods, pod)
	}
	return c
}

func (c *orderCase) search(t *testing.T) *groupSearch {
	t.Helper()
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	s := &groupSearch{begun: begun{group: &schedulingapi.PodGroup{}}, pods: c.pods, least: len(c.pods), hosts: &groupHosts{kindOf: map[types.UID]int{}}}
	constraint := &v1alpha1.NodeSetConstraint{Name: "one_rack", Expression: `nodes.all(a, nodes.all(b, a.labels["rack"] == b.labels["rack"]))`}
	s.Search = &nodeset.Search{
		Chooser: chooser, Group: &nodeset.Group{Namespace: "default", Name: "group", Constraint: constraint, Kinds: []int{2}, Waiting: [][]*v1.Pod{c.pods}, Least: 2},
		Compiled: func(ctx context.Context, problem *nodeset.Problem) (*allocator.PreparedClaim, error) {
			return chooser.Prepare(ctx, problem.Claim, nodeset.Classes{}, true)
		},
	}
	s.Waiting = [][]*v1.Pod{slices.SortedFunc(slices.Values(c.pods), nodeset.ComparePods)}
	for i := range 10 {
		name := fmt.Sprintf("node-%d", i)
		s.infos = append(s.infos, plugintest.Node(name))
		s.Nodes = append(s.Nodes, nodeset.Node{Name: name, Labels: map[string]string{"rack": fmt.Sprint(i / 2)}, Takes: []bool{true}})
	}
	s.choose = func() (*groupChoice, *fwk.Status) {
		choice, err := s.Choose(t.Context())
		require.NoError(t, err)
		if choice == nil {
			return nil, nil
		}
		return &groupChoice{Choice: choice}, nil
	}
	choice, _ := s.choose()
	s.try(t.Context(), choice)
	return s
}

// schedule tries the pods in each placement, as the scheduler does. It returns the pods' nodes if all pods fit. The pods must
// fit in at most one placement, because the scheduler would choose between several placements by score.
func (c *orderCase) schedule(t *testing.T, reorder func([]*fwk.Placement)) (nodes []string) {
	t.Helper()
	s := c.search(t)
	cycle := framework.NewCycleState()
	cycle.Write(groupSearchKey, s)
	placements := s.generate("one_rack")
	reorder(placements)
	found := 0
	for _, placement := range placements {
		state := framework.NewCycleState()
		state.SetPodGroupSchedulingCycle(cycle)
		on := c.fit(t, state, placement)
		if on == nil {
			continue
		}
		nodes = on
		if found++; found == c.feasible {
			break
		}
	}
	require.LessOrEqual(t, found, 1, "the pods fit in two placements")
	return nodes
}

// fit tries all pods in one placement. It returns their nodes, or nil if a pod does not fit.
func (c *orderCase) fit(t *testing.T, placementState *framework.CycleState, placement *fwk.Placement) (nodes []string) {
	t.Helper()
	for _, pod := range c.pods {
		state := framework.NewCycleState()
		state.SetPodGroupSchedulingCycle(placementState.GetPodGroupSchedulingCycle())
		state.SetPlacementCycleState(placementState)
		result, status := c.pl.PreFilter(t.Context(), state, pod, placement.Nodes)
		require.False(t, status.IsError(), status.Message())
		if !status.IsSuccess() {
			return nil
		}
		require.Len(t, result.NodeNames, 1)
		name := result.NodeNames.UnsortedList()[0]
		isThere := slices.ContainsFunc(placement.Nodes, func(info fwk.NodeInfo) bool { return info.Node().Name == name })
		if !isThere || slices.Contains(c.refuse, name) {
			return nil
		}
		require.Nil(t, c.pl.Reserve(t.Context(), state, pod, name))
		nodes = append(nodes, name)
	}
	return nodes
}

// TestOrderOfPlacements tries placements as Kubernetes 1.38 does: in random order, until some of them have fitted.
func TestOrderOfPlacements(t *testing.T) {
	for name, test := range map[string]struct {
		refuse, want []string
	}{
		"the first set fits":           {want: []string{"node-0", "node-1"}},
		"the first two sets don't fit": {refuse: []string{"node-1", "node-2"}, want: []string{"node-4", "node-5"}},
		"no set fits":                  {refuse: []string{"node-0", "node-2", "node-4", "node-6", "node-8"}},
	} {
		for _, feasible := range []int{1, maxPlacements} {
			for i, reorder := range orders() {
				c := newOrderCase(test.refuse...)
				c.feasible = feasible
				require.Equal(t, test.want, c.schedule(t, reorder), "%s, ends after %d, order %d", name, feasible, i)
			}
		}
	}
}

// TestConditionIfNoSetFits checks the condition of a group whose pods fit on none of the chosen sets.
func TestConditionIfNoSetFits(t *testing.T) {
	c := newOrderCase("node-1", "node-3", "node-5", "node-7", "node-9")
	require.Nil(t, c.schedule(t, func([]*fwk.Placement) {}))
	last, ok := c.pl.conditions.lastOf(conditionKey{name: wellknown.ConditionNodeSetAvailable})
	require.True(t, ok)
	require.Equal(t, metav1.ConditionFalse, last.status)
	require.Contains(t, last.text, "the pods of the group do not fit together on the sets of nodes that satisfy constraint celset.dev/one_rack: pod pod-1 does not fit on node node-9 of the last set beside the other pods")
}

// TestPodsOfAGroupAreTold checks two messages: for a group whose first pod fits nowhere, and for a pod without an assigned
// node.
func TestPodsOfAGroupAreTold(t *testing.T) {
	c := newOrderCase()
	told := func(state *framework.CycleState, pod int) string {
		_, status := c.pl.PreFilter(t.Context(), state, c.pods[pod], nil)
		return status.Message()
	}
	require.Equal(t, "the pod's group has a node set constraint, but the scheduler chose no nodes for the group: "+
		"enable the feature gates GenericWorkload, TopologyAwareWorkloadScheduling and CelsetNodeSetConstraint", told(framework.NewCycleState(), 0))

	later := c.pods[0].DeepCopy()
	later.Name, later.UID = "pod-2", "2"
	c.pods = append(c.pods, later)
	s := c.search(t)
	s.least = 3
	cycle := framework.NewCycleState()
	cycle.Write(groupSearchKey, s)
	placements := 0
	in := func() *framework.CycleState {
		state := framework.NewCycleState()
		state.SetPodGroupSchedulingCycle(cycle)
		placements++
		state.SetPlacementCycleState(&framework.CycleState{})
		return state
	}
	state := in()
	require.Equal(t, "the scheduler chose nodes for 2 of the 3 pods of the group: it tries this pod again when those pods run", told(state, 2))
	require.Empty(t, told(state, 0))
	require.Equal(t, "another pod of the group does not fit on the nodes that were chosen for it", told(state, 1))
	for placements < 5 {
		require.Empty(t, told(in(), 0))
	}
	require.Equal(t, "no other set of nodes satisfies the constraint", told(in(), 0))
}

// orders returns functions that reorder placements: each position once as the first, and some random orders.
func orders() (orders []func([]*fwk.Placement)) {
	for i := range maxPlacements {
		orders = append(orders, func(placements []*fwk.Placement) { placements[0], placements[i] = placements[i], placements[0] })
	}
	for seed := range uint64(10) {
		orders = append(orders, func(placements []*fwk.Placement) {
			rand.New(rand.NewPCG(seed, 0)).Shuffle(len(placements), func(i, j int) { placements[i], placements[j] = placements[j], placements[i] })
		})
	}
	return orders
}

// TestNamesOfPlacements checks that the names of placements contain no "/" and differ. Otherwise Kubernetes 1.38 fails the
// group.
func TestNamesOfPlacements(t *testing.T) {
	seen := map[string]bool{}
	for _, placement := range newOrderCase().search(t).generate("one_rack") {
		require.NotContains(t, placement.Name, "/")
		require.False(t, seen[placement.Name], "%s: twice", placement.Name)
		seen[placement.Name] = true
	}
	require.Len(t, seen, maxPlacements)
}
