// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// rolesCase has a leader and workers in one of two racks with four nodes each. The first node of each rack is for leaders.
type rolesCase struct {
	*nodeset.Search
	t *testing.T
}

func newRolesCase(t *testing.T, leaders, workers int) *rolesCase {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	constraint := &v1alpha1.NodeSetConstraint{Name: "rack", PodsPerNode: 1, Expression: "nodes.map(n, n.labels.rack).distinct().size() == 1 && nodes.all(n, n.pod.labels.role in ['leader', 'worker'])"}
	s := &nodeset.Search{Chooser: chooser, Compiled: compiler(chooser), Group: &nodeset.Group{Namespace: "default", Name: "g", Constraint: constraint, ReadsPods: true}}
	for i, count := range []int{leaders, workers} {
		if count > 0 {
			s.Kinds, s.Pods = append(s.Kinds, count), append(s.Pods, role(i))
		}
	}
	for i := range 8 {
		n := nodeset.Node{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{"rack": fmt.Sprint(i / 4), "type": []string{"cpu", "gpu", "gpu", "gpu"}[i%4]}}
		if leaders > 0 {
			n.Takes, n.Elsewhere = append(n.Takes, i%4 == 0), append(n.Elsewhere, i%4 != 0)
		}
		if workers > 0 {
			n.Takes, n.Elsewhere = append(n.Takes, i%4 != 0), append(n.Elsewhere, i%4 == 0)
		}
		s.Nodes = append(s.Nodes, n)
	}
	return &rolesCase{s, t}
}

func role(i int) device.OfPod {
	return device.OfPod{Labels: map[string]string{"role": []string{"leader", "worker"}[i], "app": "train"}}
}

// full makes nodes take no pods.
func (c *rolesCase) full(nodes ...int) {
	for _, i := range nodes {
		c.Nodes[i].Takes = make([]bool, len(c.Kinds))
	}
}

// runs makes a pod with a role run on a node.
func (c *rolesCase) runs(node, of int) {
	c.full(node)
	n := &c.Nodes[node]
	n.Placed, n.Running, n.Pods = true, []device.OfPod{role(of)}, []*v1.Pod{{Spec: v1.PodSpec{NodeSelector: map[string]string{"type": []string{"cpu", "gpu"}[of]}}}}
}

// requireMiss requires that there is no set, and the text of the whole message.
func (c *rolesCase) requireMiss(want string) {
	c.t.Helper()
	choice, err := c.Choose(c.t.Context())
	require.NoError(c.t, err)
	require.Nil(c.t, choice)
	why := make([]string, len(c.Nodes))
	for i := range why {
		why[i] = "full"
	}
	standing := func(node int) string { return fmt.Sprintf(", pod p%d", node) }
	require.Equal(c.t, want, c.Reason(nil)+c.NearestMiss(c.t.Context(), why, standing))
}

// TestMissesOfRoles checks messages for groups with a leader and workers on unlike nodes.
func TestMissesOfRoles(t *testing.T) {
	c := newRolesCase(t, 1, 3)
	c.full(3, 4)
	c.requireMiss("no set of 4 nodes satisfies constraint celset.dev/rack: 6 of 8 nodes can take a pod (leader: 1 of 8 nodes, worker: 5 of 8 nodes)" +
		"; nearest miss: a set of 4 nodes satisfies the constraint, but 1 of them can't take a pod: n3: full, pod p3")

	// A node of the first rack dies, and no other node of this rack takes the worker. Rack 1 has room for the whole group.
	c = newRolesCase(t, 0, 1)
	c.runs(0, 0)
	c.runs(1, 1)
	c.runs(2, 1)
	c.Nodes = append(c.Nodes[:3], c.Nodes[4:]...)
	c.Nodes[3].Elsewhere = []bool{true}
	c.requireMiss("no set of 4 nodes, of which 3 already run pods of the group, satisfies constraint celset.dev/rack: 3 of 7 nodes can take a pod" +
		"; a set of 4 nodes satisfies the constraint and can take the waiting pods, but it does not contain all nodes where pods of the group already run: n0, n1, n2")

	// The leader can run on no node of the other rack, so there is no such set.
	c.Nodes[3].Labels["type"] = "gpu"
	c.requireMiss("no set of 4 nodes, of which 3 already run pods of the group, satisfies constraint celset.dev/rack: 3 of 7 nodes can take a pod")
}

// TestLimitsOfRoles checks the messages for too many different pods, and for too many ways to divide them.
func TestLimitsOfRoles(t *testing.T) {
	c := newRolesCase(t, 0, 1)
	c.Kinds, c.Pods = nil, nil
	for i := range 200 {
		c.Kinds, c.Pods = append(c.Kinds, 1), append(c.Pods, device.OfPod{Labels: map[string]string{"role": fmt.Sprint(i)}})
	}
	for i := len(c.Nodes); i < 200; i++ {
		c.Nodes = append(c.Nodes, nodeset.Node{Name: fmt.Sprintf("n%d", i), Takes: make([]bool, 200)})
	}
	_, err := c.Choose(t.Context())
	require.ErrorContains(t, err, "the expression distinguishes 200 kinds of pods, and 200 nodes with 200 kinds make 40000 candidates, the limit is 32768: read fewer labels of pods, or narrow the nodes with a nodeSelector")

	c = newRolesCase(t, 8, 8)
	c.Constraint.PodsPerNode, c.Constraint.Expression = 8, "nodes.all(n, n.pods.exists(p, p.labels.role == 'nobody'))"
	c.Hosts = takesAll{}
	for i := range c.Nodes {
		c.Nodes[i].Takes, c.Nodes[i].Free = []bool{true, true}, 8
	}
	choice, err := c.Choose(t.Context())
	require.NoError(t, err)
	require.Nil(t, choice)
	require.Contains(t, c.Reason(nil), ", and only the first 256 ways to divide the pods among the nodes were searched: use a smaller podsPerNode")
}

// takesAll has nodes that take all pods.
type takesAll struct{}

func (takesAll) Refusal(context.Context, int, nodeset.Load) (string, error) { return "", nil }

func (takesAll) Together(context.Context, []nodeset.Member) (bool, error) { return true, nil }

func (takesAll) Compete() bool { return false }

func (takesAll) Each(_ context.Context, n int, do func(int)) {
	for i := range n {
		do(i)
	}
}
