// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// ofKinds is a group of numbered pods, all of different kinds, and nodes that take them all.
func ofKinds(pods, nodes, perNode int, expression string) *problem {
	p := &problem{group: nodeset.Group{ReadsPods: true, Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: expression, PodsPerNode: perNode}}}
	for i := range pods {
		p.group.Kinds, p.needs = append(p.group.Kinds, 1), append(p.needs, 1)
		p.group.Pods = append(p.group.Pods, device.OfPod{Index: ptr.To(int64(i))})
	}
	for i := range nodes {
		n := nodeset.Node{Name: fmt.Sprintf("n%04d", i), Labels: map[string]string{"rack": "a"}, Free: perNode}
		for range pods {
			n.Takes = append(n.Takes, true)
		}
		p.nodes, p.has, p.apart = append(p.nodes, n), append(p.has, pods), append(p.apart, false)
	}
	return p
}

// Pods of many kinds can be divided in more ways than any search can try, and most of the ways that begin with few pods on a node
// lead nowhere. The search ends nevertheless.
func TestManyKindsShareNodes(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	for _, of := range []struct{ pods, nodes, perNode int }{{40, 1, 40}, {40, 2, 40}, {63, 3, 32}, {100, 8, 100}} {
		p := ofKinds(of.pods, of.nodes, of.perNode, "nodes.all(n, n.pods.exists(p, p.index < 0))")
		choice, err := p.search(chooser).Choose(t.Context())
		require.NoError(t, err)
		require.Nil(t, choice)
	}
}

// With one pod on each node, each kind of pods has a request with a candidate for each node. A candidate names its request only,
// and selectors are not evaluated for each candidate.
func TestManyKindsOnManyNodes(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	p := ofKinds(100, 101, 1, "nodes.all(n, n.pod.index >= 0)")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	choice, err := p.search(chooser).Choose(t.Context())
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.NotNil(t, choice)
	require.Equal(t, 100, choice.Pods)
	allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
	t.Logf("%d MiB", allocated)
	require.Less(t, allocated, uint64(512))
}

// Each candidate holds the labels of its pods, so their size is limited for all candidates together.
func TestManyLabelsOfPods(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	for _, of := range []struct {
		labels, bytes int
		want          string
	}{
		{device.MaxLabels + 1, 1, "has more than 128 labels: read labels of pods by key"},
		{device.MaxLabels, 300, "the labels of pods that the expression reads take more than 32 MiB for all nodes: read fewer labels of pods"},
		{device.MaxLabels, 1, ""},
	} {
		p := ofKinds(8, 200, 1, "nodes.all(n, n.pod.labels.all(k, k != ''))")
		for i := range p.group.Pods {
			p.group.Pods[i].Labels = map[string]string{}
			for label := range of.labels {
				p.group.Pods[i].Labels[fmt.Sprintf("l%d-%d-%0*d", i, label, of.bytes, 0)] = ""
			}
		}
		choice, err := p.search(chooser).Choose(t.Context())
		if of.want != "" {
			require.ErrorContains(t, err, of.want)
			continue
		}
		require.NoError(t, err)
		require.NotNil(t, choice)
	}
}

// A constraint that is changed later may permit fewer pods on a node than run there. The node remains in the set and gets no more.
func TestMorePodsThanPermitted(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	for _, readsPods := range []bool{false, true} {
		p := ofKinds(1, 3, 2, "nodes.all(n, n.labels.rack == 'a')")
		p.group.ReadsPods = readsPods
		p.nodes[0].Placed, p.nodes[0].Free = true, -1
		p.nodes[0].Running = slices.Repeat([]device.OfPod{{}}, 3)
		choice, err := p.search(chooser).Choose(t.Context())
		require.NoError(t, err)
		require.NotNil(t, choice)
		require.Equal(t, []nodeset.Member{{Node: 0, Load: nodeset.Load{0}}, {Node: 1, Load: nodeset.Load{1}}}, choice.Members)
	}
}

// A part of the pods is placed. The best choice has pods of the second kind, which get better devices.
func TestBestKindWithDevices(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	group := nodeset.Group{Namespace: "default", Name: "g", Kinds: []int{1, 1}, Least: 1, Constraint: &v1alpha1.NodeSetConstraint{
		Name: "set", PodsPerNode: 1, Expression: "nodes.all(n, n.devices.size() > 0)", Preference: "nodes.map(n, n.devices.size()).sum()",
	}}
	problem, err := nodeset.NewProblem(&group, 0, 1)
	require.NoError(t, err)
	prepared, err := chooser.Prepare(t.Context(), problem.Claim, nodeset.Classes{}, true)
	require.NoError(t, err)
	reading := nodeset.ReadingOf(prepared)
	require.NoError(t, group.Read(reading))
	n := nodeset.Node{Name: "n", Takes: []bool{true, true}}
	local := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &n.Name}}
	for devices := 1; devices <= 2; devices++ {
		set, err := reading.SetOf(nil, slices.Repeat([]allocator.AllocatedDevice{{Device: &resourceapi.Device{}, Slice: local}}, devices))
		require.NoError(t, err)
		n.Sets = append(n.Sets, []nodeset.Set{set})
	}
	search := &nodeset.Search{Chooser: chooser, Group: &group, Nodes: []nodeset.Node{n}, Compiled: compiler(chooser)}
	choice, err := search.Choose(t.Context())
	require.NoError(t, err)
	require.NotNil(t, choice)
	require.Equal(t, []int{0, 1}, choice.Kinds)
	require.Equal(t, allocator.PreferenceBest, choice.Outcome)
}
