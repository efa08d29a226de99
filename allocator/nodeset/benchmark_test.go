// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// BenchmarkChoose chooses nodes with expressions that are compiled. cold: nothing is known of the nodes, as after a restart. warm:
// another node is in use than the last time.
func BenchmarkChoose(b *testing.B) {
	for _, fleet := range []struct {
		name, expression string
		nodes, size      int
		labels           func(i int) map[string]string
		free             func(i int) bool
	}{
		{
			"16-of-a-torus-of-1024", "nodes.box(n, [int(n.labels.x), int(n.labels.y)], [4, 4], [32, 32])", 1024, 16,
			func(i int) map[string]string {
				return map[string]string{"x": strconv.Itoa(i / 32), "y": strconv.Itoa(i % 32)}
			},
			func(i int) bool { x, y := i/32, i%32; return (x/2+y/2)%2 == 0 || (x >= 30 || x < 2) && 5 <= y && y < 9 },
		},
		{
			"18-of-5004-in-a-rack", "nodes.map(n, n.labels.rack).distinct().size() == 1", 5004, 18,
			func(i int) map[string]string { return map[string]string{"rack": strconv.Itoa(i / 18)} },
			func(i int) bool { return i%2 == 0 || i >= 4500 },
		},
		{
			"32-of-5004-in-two-racks", "nodes.map(n, n.labels.rack).distinct().size() == 2 && nodes.all(n, nodes.filter(o, o.labels.rack == n.labels.rack).size() == 16)", 5004, 32,
			func(i int) map[string]string { return map[string]string{"rack": strconv.Itoa(i / 18)} },
			func(i int) bool { return i%2 == 0 || i >= 4500 },
		},
	} {
		group := nodeset.Group{Namespace: "default", Name: "g", Kinds: []int{fleet.size}, Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: fleet.expression, PodsPerNode: 1}}
		var nodes []nodeset.Node
		var used []int
		for i := range fleet.nodes {
			nodes = append(nodes, nodeset.Node{Name: fmt.Sprintf("n%05d", i), Labels: fleet.labels(i), Takes: []bool{fleet.free(i)}})
			if i > 128 && i < 896 && fleet.free(i) && i%7 == 3 && len(used) < 64 {
				used = append(used, i)
			}
		}
		run := func(b *testing.B, cold bool) {
			problem, err := nodeset.NewProblem(&group)
			require.NoError(b, err)
			chooser, err := nodeset.NewChooser(nil)
			require.NoError(b, err)
			prepared, err := chooser.Prepare(b.Context(), problem.Claim, nodeset.Classes{}, true)
			require.NoError(b, err)
			for i := 0; b.Loop(); i++ {
				if cold {
					b.StopTimer()
					chooser, err = nodeset.NewChooser(nil)
					require.NoError(b, err)
					prepared, err = chooser.Prepare(b.Context(), problem.Claim, nodeset.Classes{}, true)
					require.NoError(b, err)
					b.StartTimer()
				}
				at := used[i%len(used)]
				nodes[at].Takes[0] = false
				choice, err := chooser.Choose(b.Context(), problem, prepared, nodes)
				nodes[at].Takes[0] = true
				require.NoError(b, err)
				require.NotNil(b, choice)
			}
		}
		b.Run(fleet.name+"/cold", func(b *testing.B) { run(b, true) })
		b.Run(fleet.name+"/warm", func(b *testing.B) { run(b, false) })
	}
}

// sameRails are ways to say it.
var sameRails = []struct{ name, expression string }{
	{"texts", "nodes.map(n, " + rails + ".map(r, string(r)).join(',')).distinct().size() == 1"},
	{"lists", "nodes.map(n, " + rails + ").distinct().size() == 1"},
	{"first", "nodes.all(n, " + rails + " == " + railsOfFirst + ")"},
	{"sets", "nodes.all(n, sets.equivalent(" + rails + ", " + railsOfFirst + "))"},
}

// BenchmarkSameRails chooses nodes for 64 pods with the same rails in all, from listing what each may get to the choice: 200
// nodes have eight GPUs and eight network interfaces, of which a third is in use on every other node.
func BenchmarkSameRails(b *testing.B) {
	for _, want := range []pod{{8, 8, false}, {4, 4, false}, {1, 2, false}} {
		for _, as := range sameRails {
			b.Run(fmt.Sprintf("gpus=%d/nics=%d/compared=%s", want.gpus, want.nics, as.name), func(b *testing.B) {
				c := devicesCase{pods: []pod{want}, group: nodeset.Group{Namespace: "default", Name: "g", Kinds: []int{64}}}
				c.group.Constraint = &v1alpha1.NodeSetConstraint{Name: "rails", Expression: as.expression, PodsPerNode: 1}
				for i := range 200 {
					h := host{node: &v1.Node{}}
					h.node.Name = fmt.Sprintf("n%03d", i)
					for rail := range int64(8) {
						attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"rail": {IntValue: &rail}, "serial": {StringValue: ptr.To(fmt.Sprint(i, rail))}}
						h.gpus = append(h.gpus, resourceapi.Device{Name: fmt.Sprint("g", rail), Attributes: attributes})
						if i%2 == 0 || (int(rail)*7+i)%3 > 0 {
							h.nics = append(h.nics, resourceapi.Device{Name: fmt.Sprint("n", rail), Attributes: attributes})
						}
					}
					c.hosts = append(c.hosts, h)
				}
				for b.Loop() {
					chooser, err := nodeset.NewChooser(nil)
					require.NoError(b, err)
					chosen, failed := c.choose(b, chooser)
					require.False(b, failed)
					require.Len(b, chosen, 64)
				}
			})
		}
	}
}
