// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// These expressions read the pods of nodes. Their results do not depend on the order of the nodes. The first list reads the only
// pod of a node.
var (
	onePodExpressions = []string{
		"nodes.filter(n, n.pod.labels['role'] == 'a').map(n, n.labels.rack).distinct().size() == 1",
		"nodes.filter(n, n.pod.labels.role == 'a').map(n, n.labels.rack).distinct().size() <= 1 && nodes.filter(n, n.pod.labels.role == 'b').map(n, n.labels.rack).distinct().size() <= 1",
		"nodes.all(n, n.pod.labels.role == 'a' ? n.labels.rack == 'a' : n.labels.rack != 'a')",
		"nodes.all(n, n.pod.labels.role != 'b' || nodes.exists(o, o != n && o.pod.labels.role == 'a' && o.labels.rack == n.labels.rack))",
		"nodes.all(a, nodes.all(b, a.pod.labels.role == b.pod.labels.role || a.labels.rack != b.labels.rack))",
		"nodes.all(n, !has(n.pod.index) || n.pod.index % 2 == 0 || n.labels.rack == 'b')",
		"nodes.all(n, !has(n.pod.labels.role) || n.pod.labels.role == n.labels.rack)",
		"nodes.all(n, nodes.filter(o, o.pod.labels.role == n.pod.labels.role && o.labels.rack == n.labels.rack).size() <= 2)",
		"nodes.exists_one(n, n.pod.labels.role == 'c' && n.labels.rack == 'b') || nodes.all(n, n.pod.labels.role != 'c')",
	}
	severalPodsExpressions = []string{
		"nodes.filter(n, n.pods.exists(p, p.labels.role == 'a')).map(n, n.labels.rack).distinct().size() <= 1",
		"nodes.all(n, n.pods.all(p, p.labels.role == n.pods[0].labels.role))",
		"nodes.all(n, n.pods.exists(p, p.labels.role == 'a') || nodes.exists(o, o.labels.rack == n.labels.rack && o.pods.exists(p, p.labels.role == 'a')))",
		"nodes.all(n, n.pods.size() == 2 || n.labels.rack == 'a')",
		"nodes.map(n, n.pods.filter(p, p.labels.role == 'b').size()).max() <= 1",
		// The search has no bounds for these expressions.
		"nodes.map(n, n.pods.map(p, p.labels.role).join('') + n.labels.rack).distinct().join('-').size() in [2, 5, 8]",
		"nodes.map(n, n.pods.map(p, p.labels.role).join('') + n.labels.rack).filter(t, t.contains('a')).size() * 2 == nodes.size()",
		"nodes.filter(n, (n.pods.map(p, p.labels.role).join('') + n.labels.rack).lowerAscii().matches('^(ab|ba|cc)+$')).size() * 3 % 7 == nodes.size() * 3",
	}
	rolePreferences = []string{
		"nodes.filter(n, n.pods.exists(p, p.labels.role == 'a') && n.labels.rack == 'b').size()",
		"0 - nodes.filter(n, n.pods.exists(p, p.labels.role == 'b')).map(n, n.labels.rack).distinct().size()",
		"nodes.map(n, n.pods.size() * (n.labels.rack == 'c' ? 2 : 1)).sum()",
	}
)

// drawRoles draws a group whose kinds have roles.
func drawRoles(t *rapid.T, maxNodes, maxPerNode int, prefers bool) *problem {
	p := draw(t, maxNodes, maxPerNode, false)
	role := rapid.SampledFrom([]string{"a", "b", "c"})
	ofPod := func() device.OfPod {
		pod := device.OfPod{Labels: map[string]string{"role": role.Draw(t, "role")}}
		if rapid.IntRange(0, 2).Draw(t, "numbered") == 0 {
			pod.Index = ptr.To(int64(rapid.IntRange(0, 3).Draw(t, "index")))
		}
		return pod
	}
	p.group.ReadsPods = true
	for range p.group.Kinds {
		p.group.Pods = append(p.group.Pods, ofPod())
	}
	for i := range p.nodes {
		if n := &p.nodes[i]; n.Placed {
			for range p.group.Constraint.PodsPerNode - n.Free {
				n.Running = append(n.Running, ofPod())
			}
		}
	}
	texts := severalPodsExpressions
	if p.group.Constraint.PodsPerNode == 1 {
		texts = slices.Concat(onePodExpressions, severalPodsExpressions)
	}
	p.group.Constraint.Expression, p.group.Constraint.Preference = rapid.SampledFrom(texts).Draw(t, "expression of pods"), ""
	if prefers {
		p.group.Constraint.Preference = rapid.SampledFrom(rolePreferences).Draw(t, "preference of pods")
	}
	return p
}

// node returns a node with a load as expressions see it.
func (p *problem) node(t require.TestingT, i int, load nodeset.Load) *device.Device {
	n := &p.nodes[i]
	pods := slices.Clone(n.Running)
	for kind, count := range load {
		pods = append(pods, slices.Repeat([]device.OfPod{p.group.Pods[kind]}, count)...)
	}
	value, err := device.NodePodsOf(pods)
	require.NoError(t, err)
	d := &resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{device.NodePods: value}}
	for key, value := range n.Labels {
		d.Attributes[device.NodeLabel(key)] = resourceapi.DeviceAttribute{StringValue: &value}
	}
	return device.New(device.NodeDriver, d)
}

// verdict evaluates the expressions for the loads of all nodes. Nodes without pods are not in the set.
func (p *problem) verdict(t require.TestingT, e *device.Environment, loads []nodeset.Load) (holds bool, value int64, failed bool) {
	var of []*device.Device
	for i := range p.nodes {
		if p.nodes[i].Placed || loads[i].Pods() > 0 {
			of = append(of, p.node(t, i, loads[i]))
		}
	}
	expression, err := e.Compile(context.Background(), p.group.Constraint.Expression)
	require.NoError(t, err)
	if holds, err = expression.Satisfied(context.Background(), of, cel.NewBudget(1<<30)); err != nil {
		return false, 0, true
	}
	if p.group.Constraint.Preference != "" && holds {
		preference, err := e.CompileInt(context.Background(), p.group.Constraint.Preference)
		require.NoError(t, err)
		if value, err = preference.Value(context.Background(), of, cel.NewBudget(1<<30)); err != nil {
			return false, 0, true
		}
	}
	return holds, value, false
}

// assignments calls do for the loads of all nodes, for each way to assign count pods to nodes that take them.
func (p *problem) assignments(count int, do func(loads []nodeset.Load)) {
	loads, left := make([]nodeset.Load, len(p.nodes)), slices.Clone(p.group.Kinds)
	var visit func(node, count int)
	visit = func(node, count int) {
		if node == len(p.nodes) {
			if count == 0 {
				do(loads)
			}
			return
		}
		var fill func(kind, free int)
		fill = func(kind, free int) {
			if kind == len(left) {
				if refusal, _ := p.Refusal(context.Background(), node, loads[node]); refusal == "" {
					visit(node+1, count-loads[node].Pods())
				}
				return
			}
			for n := range min(left[kind], free, count) + 1 {
				loads[node][kind], left[kind] = n, left[kind]-n
				fill(kind+1, free-n)
				loads[node][kind], left[kind] = 0, left[kind]+n
			}
		}
		loads[node] = make(nodeset.Load, len(left))
		fill(0, p.nodes[node].Free)
	}
	visit(0, count)
}

// bruteRoles tries all assignments.
func (p *problem) bruteRoles(t require.TestingT, e *device.Environment) (pods int, best int64, found, failed bool) {
	all := nodeset.Load(p.group.Kinds).Pods()
	for _, count := range []int{all, p.group.Least} {
		p.assignments(count, func(loads []nodeset.Load) {
			holds, value, fails := p.verdict(t, e, loads)
			failed = failed || fails
			if holds && (!found || value > best) {
				found, best = true, value
			}
		})
		if found || failed {
			return count, best, found, failed
		}
	}
	return 0, 0, false, false
}

func requireSameRoles(t *testing.T, maxNodes, maxPerNode int, prefers bool) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	seen, none := 0, 0
	cases.Check(t, func(t *rapid.T) {
		p := drawRoles(t, maxNodes, maxPerNode, prefers)
		pods, best, found, failed := p.bruteRoles(t, chooser.Environment())
		choice, err := p.search(chooser).Choose(context.Background())
		if failed {
			// The search may find a set without evaluating one that fails.
			return
		}
		require.NoError(t, err, "%+v", p.group.Constraint)
		require.Equal(t, found, choice != nil, "%+v", p.group.Constraint)
		if !found {
			none++
			return
		}
		seen++
		require.Equal(t, pods, choice.Pods)
		loads, kinds := make([]nodeset.Load, len(p.nodes)), make([]int, len(p.group.Kinds))
		for i := range loads {
			loads[i] = make(nodeset.Load, len(p.group.Kinds))
		}
		for _, m := range choice.Members {
			require.Zero(t, loads[m.Node].Pods(), "a node occurs twice")
			require.True(t, p.nodes[m.Node].Placed || m.Load.Pods() > 0)
			require.LessOrEqual(t, m.Load.Pods(), p.nodes[m.Node].Free)
			refusal, _ := p.Refusal(context.Background(), m.Node, m.Load)
			require.Empty(t, refusal)
			loads[m.Node] = m.Load
			for kind, n := range m.Load {
				kinds[kind] += n
			}
		}
		require.Equal(t, kinds, choice.Kinds)
		for kind, n := range kinds {
			require.LessOrEqual(t, n, p.group.Kinds[kind])
		}
		holds, value, _ := p.verdict(t, chooser.Environment(), loads)
		require.True(t, holds, "%+v: %+v", p.group.Constraint, choice.Members)
		if prefers {
			require.Equal(t, best, value, "%+v", p.group.Constraint)
		}
	})
	t.Logf("%d sets, %d times none", seen, none)
	require.Positive(t, seen)
	require.Positive(t, none)
}

// TestRoles compares groups with two or three roles with trying all assignments, one pod on each node.
func TestRoles(t *testing.T) { requireSameRoles(t, 9, 1, false) }

// TestRolesShareNodes does the same for up to three pods on a node.
func TestRolesShareNodes(t *testing.T) { requireSameRoles(t, 5, 3, false) }

// TestBestRoles compares the best assignment with the best of all assignments.
func TestBestRoles(t *testing.T) { requireSameRoles(t, 6, 2, true) }
