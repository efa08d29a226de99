// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// The search ends within its limit even if all pods differ. Two kinds exclude each other on every node.
func TestManyKinds(t *testing.T) {
	const kinds, nodes = 40, 12
	p := &problem{group: nodeset.Group{
		Namespace: "default", Name: "g", Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: "nodes.size() == 2", PodsPerNode: 20},
	}}
	for range kinds {
		p.group.Kinds, p.needs = append(p.group.Kinds, 1), append(p.needs, 1)
	}
	for i := range nodes {
		n := nodeset.Node{Name: fmt.Sprintf("n%02d", i), Free: 20}
		for range kinds {
			n.Takes = append(n.Takes, true)
		}
		// The node takes one pod less than permitted. The bounds don't show this, because they treat each kind separately.
		p.nodes, p.has, p.apart = append(p.nodes, n), append(p.has, 19), append(p.apart, true)
	}
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	choice, err := p.search(chooser).Choose(t.Context())
	require.Nil(t, choice)
	require.ErrorContains(t, err, "use fewer kinds of pods, or a smaller podsPerNode")
}

// The message names nodes that would satisfy the constraint if they could take the pods, or if the group had no running pods.
func TestNearestMisses(t *testing.T) {
	rack := func(name, rack string, free int, placed bool) nodeset.Node {
		return nodeset.Node{Name: name, Labels: map[string]string{"rack": rack}, Free: free, Takes: []bool{true}, Placed: placed}
	}
	for name, test := range map[string]struct {
		pods, perNode int
		nodes         []nodeset.Node
		want          string
	}{
		"room": {5, 3, []nodeset.Node{rack("n0", "a", 3, false), rack("n1", "a", 3, false)},
			"no set of 2 nodes satisfies constraint celset.dev/set and can take 5 pods: 2 of 2 nodes can take a pod, " +
				"together at most 4 pods; nodes n0, n1 satisfy the constraint, but together they can't take 5 pods: n0 can take 2: room, n1 can take 2: room"},
		"placed": {1, 1, []nodeset.Node{rack("n0", "a", 0, true), rack("n1", "b", 1, false), rack("n2", "b", 1, false)},
			"no set of 2 nodes, of which 1 already run pods of the group, satisfies constraint celset.dev/set: 2 of 3 nodes can take a pod" +
				"; a set of 2 nodes satisfies the constraint and can take pods, but it does not contain all nodes where pods of the group already run: n0"},
	} {
		p := &problem{nodes: test.nodes, needs: []int{1}, group: nodeset.Group{
			Namespace: "default", Name: "g", Kinds: []int{test.pods}, Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: expressions[0], PodsPerNode: test.perNode},
		}}
		for range test.nodes {
			p.has, p.apart = append(p.has, 2), append(p.apart, false)
		}
		chooser, err := nodeset.NewChooser(nil)
		require.NoError(t, err)
		s := p.search(chooser)
		choice, err := s.Choose(t.Context())
		require.NoError(t, err)
		require.Nil(t, choice)
		nothing := func(int) string { return "" }
		require.Equal(t, test.want, s.Reason(nil)+s.NearestMiss(t.Context(), make([]string, len(test.nodes)), nothing), name)
	}
}

// The expression can't be analyzed for bounds, so the search tries all sets and exhausts its budget.
func TestBudgetOfNodes(t *testing.T) {
	p := &problem{needs: []int{1}, group: nodeset.Group{
		Namespace: "default", Name: "g", Kinds: []int{4}, Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: "nodes.map(n, n.labels.rack).join(',') == 'b'"},
	}}
	for i := range 12 {
		p.nodes = append(p.nodes, nodeset.Node{Name: fmt.Sprintf("n%02d", i), Labels: map[string]string{"rack": "a"}, Free: 1, Takes: []bool{true}})
		p.has, p.apart = append(p.has, 1), append(p.apart, false)
	}
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	s := p.search(chooser)
	s.Options = []allocator.Option{allocator.WithStepBudget(100)}
	_, err = s.Choose(t.Context())
	require.EqualError(t, err, "PodGroup default/g, constraint celset.dev/set: the search exceeds its budget of 100 steps, with 231 of 495 sets of nodes left undecided: "+
		"write simple conditions joined by &&, or narrow the nodes with a nodeSelector")
}

// There are very many ways to choose 60 of 64 different pods. The search tries only a limited number of them.
func TestSomeOfManyKinds(t *testing.T) {
	p := &problem{group: nodeset.Group{
		Namespace: "default", Name: "g", Least: 60, ReadsDevices: true, Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: "nodes.all(n, n.devices.size() == 1)"},
	}}
	for range 64 {
		p.group.Kinds = append(p.group.Kinds, 1)
	}
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	choice, err := p.search(chooser).Choose(t.Context())
	require.NoError(t, err)
	require.Nil(t, choice)
}
