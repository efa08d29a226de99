// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// numbered returns the pod of an indexed Job.
func numbered(index int, role string) *v1.Pod {
	pod := &v1.Pod{}
	pod.Name = fmt.Sprintf("p%d", (index*7)%100)
	pod.Labels = map[string]string{"batch.kubernetes.io/job-completion-index": fmt.Sprint(index), "role": role}
	return pod
}

// TestRanksAreNeighbors places groups in segments, lets pods die, and places them again. Each run of pods stays in one clique.
func TestRanksAreNeighbors(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	placed, again := 0, 0
	cases.Check(t, func(t *rapid.T) {
		size, count := rapid.IntRange(1, 4).Draw(t, "size"), rapid.IntRange(1, 14).Draw(t, "pods")
		var nodes []nodeset.Node
		for clique := range rapid.IntRange(2, 6).Draw(t, "cliques") {
			for range rapid.IntRange(1, 7).Draw(t, "free") {
				nodes = append(nodes, nodeset.Node{Labels: map[string]string{"clique": fmt.Sprint(clique)}})
			}
		}
		nodes = rapid.Permutation(nodes).Draw(t, "order")
		for i := range nodes {
			nodes[i].Name = fmt.Sprintf("n%02d", i)
		}
		// With a leader, the first pod is outside of the segments.
		leads := rapid.Bool().Draw(t, "leads")
		list := "nodes"
		if leads {
			list = "nodes.filter(n, n.pod.labels.role == 'worker')"
		}
		constraint := &v1alpha1.NodeSetConstraint{Name: "set", PodsPerNode: 1, Expression: fmt.Sprintf("%s.segments(%d, n, n.labels.clique)", list, size)}
		var waiting []*v1.Pod
		for i := range count {
			waiting = append(waiting, numbered(i, "worker"))
		}
		var leader *v1.Pod
		if leads {
			leader = numbered(0, "leader")
		}
		on := map[string]*v1.Pod{}
		for round := range 3 {
			group := &nodeset.Group{Namespace: "default", Name: "g", Constraint: constraint, ReadsPods: leads}
			pods := [][]*v1.Pod{}
			add := func(role string, of []*v1.Pod) {
				if len(of) == 0 {
					return
				}
				slices.SortFunc(of, nodeset.ComparePods)
				pods, group.Kinds = append(pods, of), append(group.Kinds, len(of))
				if leads {
					group.Pods = append(group.Pods, device.OfPod{Labels: map[string]string{"role": role}})
				}
			}
			if leader != nil {
				add("leader", []*v1.Pod{leader})
			}
			add("worker", waiting)
			if len(pods) == 0 {
				return
			}
			for i := range nodes {
				n := &nodes[i]
				pod := on[n.Name]
				n.Takes, n.Placed, n.Pods, n.Running = slices.Repeat([]bool{pod == nil}, len(pods)), pod != nil, nil, nil
				if pod != nil {
					n.Pods = []*v1.Pod{pod}
					if leads {
						n.Running = []device.OfPod{{Labels: map[string]string{"role": pod.Labels["role"]}}}
					}
				}
			}
			group.Waiting = pods
			search := &nodeset.Search{Chooser: chooser, Group: group, Nodes: nodes, Compiled: compiler(chooser)}
			choice, err := search.Choose(t.Context())
			require.NoError(t, err)
			if choice == nil {
				return
			}
			if placed++; round > 0 {
				again++
			}
			seats := search.Seats(t.Context(), choice)
			for kind, members := range seats {
				require.Len(t, members, len(pods[kind]))
				for i, member := range members {
					name := nodes[choice.Members[member].Node].Name
					require.NotContains(t, on, name)
					require.Equal(t, 1, choice.Members[member].Load[kind])
					on[name] = pods[kind][i]
				}
			}
			cliqueOf := map[int]string{}
			for i := range nodes {
				pod := on[nodes[i].Name]
				if pod == nil || pod.Labels["role"] == "leader" {
					continue
				}
				index, _ := nodeset.IndexOf(pod)
				segment := int(index) / size
				if clique, known := cliqueOf[segment]; known {
					require.Equal(t, clique, nodes[i].Labels["clique"], "segment %d", segment)
				}
				cliqueOf[segment] = nodes[i].Labels["clique"]
			}
			// Some pods die, and some of their nodes with them.
			waiting, leader = nil, nil
			for i := len(nodes) - 1; i >= 0; i-- {
				pod := on[nodes[i].Name]
				if pod == nil || rapid.IntRange(0, 3).Draw(t, "dies") > 0 {
					continue
				}
				delete(on, nodes[i].Name)
				if pod.Labels["role"] == "leader" {
					leader = pod
				} else {
					waiting = append(waiting, pod)
				}
				if rapid.Bool().Draw(t, "with its node") {
					nodes = slices.Delete(nodes, i, i+1)
				}
			}
		}
	})
	t.Logf("%d times placed, %d times again", placed, again)
	require.Positive(t, again)
}
