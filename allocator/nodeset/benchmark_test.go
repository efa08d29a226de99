// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/gangfleet"
)

// examples is the directory with example constraints for the model fleets in package gangfleet.
const examples = "../../manifests/examples/gangs"

// BenchmarkChoose chooses nodes in model fleets, with compiled expressions. In "cold" nothing about the nodes is cached, as
// after a restart. In "warm" a different node is in use than in the previous search.
func BenchmarkChoose(b *testing.B) {
	torus, racks, tree := gangfleet.Torus(16, 16, 4), gangfleet.Racks(20), gangfleet.FatTree(32, 16)
	const rack = "n.labels['example.com/rack']"
	// Half of the hosts are in use: every other block of 2x2x2 in the torus, or every other tray in racks. The only free sets
	// wrap around an edge of the torus, or come last in the order of the search.
	inBlocks := func(at []int) bool { return (at[0]/2+at[1]/2+at[2]/2)%2 == 0 }
	for _, bench := range []struct {
		name  string
		fleet gangfleet.Fleet
		// constraint is the name of an example, or an expression.
		constraint string
		size       int
		free       func(at []int) bool
	}{
		{"64-hosts-4x4x4-of-16x16x4", torus, "slice_8x8x4", 64, func(at []int) bool {
			return inBlocks(at) || (at[0] >= 14 || at[0] < 2) && 5 <= at[1] && at[1] < 9
		}},
		{"16-hosts-4x4-of-16x16x4", torus, "slice_8x8", 16, func(at []int) bool {
			return inBlocks(at) || (at[0] >= 14 || at[0] < 2) && 5 <= at[1] && at[1] < 9 && at[2] == 2
		}},
		{"16-hosts-4x4-of-32x32", gangfleet.Torus(32, 32, 1), "nodes.box(n, [n.attributes['tpu.example.com'].hostX, n.attributes['tpu.example.com'].hostY], [4, 4], [32, 32])", 16, func(at []int) bool {
			return inBlocks(at) || (at[0] >= 30 || at[0] < 2) && 5 <= at[1] && at[1] < 9
		}},
		{"18-trays-of-360-one-domain", racks, "one_nvlink_domain", 18, func(at []int) bool { return at[1]%2 == 0 || at[0] >= 18 }},
		{"32-trays-of-360-two-domains", racks, "two_nvlink_domains", 32, func(at []int) bool { return at[1]%2 == 0 || at[0] >= 18 }},
		{"4-trays-of-360-in-four-racks", racks, "a_node_in_each_of_four_racks", 4, func(at []int) bool { return at[0]%4 < 2 || at[0] == 0 || at[0] == 18 || at[0] == 19 }},
		{"64-nodes-of-512-few-leafs", tree, "few_leafs", 64, func(at []int) bool { return at[1]%2 == 0 || at[0] >= 28 }},
		{"18-of-5004-in-a-rack", gangfleet.Racks(278), "nodes.map(n, " + rack + ").distinct().size() == 1", 18, func(at []int) bool { return at[1]%2 == 0 || at[0] >= 250 }},
		{"32-of-5004-in-two-racks", gangfleet.Racks(278), "nodes.map(n, " + rack + ").distinct().size() == 2 && nodes.all(n, nodes.filter(o, o.labels['example.com/rack'] == " + rack + ").size() == 16)", 32, func(at []int) bool { return at[1]%2 == 0 || at[0] >= 250 }},
	} {
		constraint := &v1alpha1.NodeSetConstraint{Name: "set", Expression: bench.constraint, PodsPerNode: 1}
		if !strings.Contains(bench.constraint, "nodes.") {
			var err error
			constraint, err = gangfleet.Constraint(examples, bench.constraint)
			require.NoError(b, err)
		}
		group := nodeset.Group{Namespace: "default", Name: "g", Kinds: []int{bench.size}, Constraint: constraint}
		objects, published := bench.fleet.Objects()
		var nodes []nodeset.Node
		var used []int
		for i, h := range bench.fleet {
			nodes = append(nodes, nodeset.Node{Name: objects[i].Name, Labels: objects[i].Labels, Slices: published[i], Takes: []bool{bench.free(h.At)}})
			if i > len(bench.fleet)/8 && i < len(bench.fleet)*7/8 && bench.free(h.At) && i%7 == 3 && len(used) < 64 {
				used = append(used, i)
			}
		}
		run := func(b *testing.B, cold bool) {
			// start returns a search with compiled expressions, which a scheduler also keeps, and with an empty cache.
			start := func() *nodeset.Search {
				chooser, err := nodeset.NewChooser(nil)
				require.NoError(b, err)
				problem, err := nodeset.NewProblem(&group, 0, bench.size)
				require.NoError(b, err)
				prepared, err := chooser.Prepare(b.Context(), problem.Claim, nodeset.Classes{}, true)
				require.NoError(b, err)
				return &nodeset.Search{Chooser: chooser, Group: &group, Nodes: nodes, Compiled: func(context.Context, *nodeset.Problem) (*allocator.PreparedClaim, error) { return prepared, nil }}
			}
			warm := start()
			for i := 0; b.Loop(); i++ {
				search := &nodeset.Search{Chooser: warm.Chooser, Group: &group, Nodes: nodes, Compiled: warm.Compiled}
				if cold {
					b.StopTimer()
					search = start()
					b.StartTimer()
				}
				at := used[i%len(used)]
				nodes[at].Takes[0] = false
				choice, err := search.Choose(b.Context())
				nodes[at].Takes[0] = true
				require.NoError(b, err)
				require.NotNil(b, choice)
			}
		}
		b.Run(bench.name+"/cold", func(b *testing.B) { run(b, true) })
		b.Run(bench.name+"/warm", func(b *testing.B) { run(b, false) })
	}
}

// BenchmarkSameRails chooses nodes for pods that must have the same rails. It includes listing the sets of devices on each
// node. Of 200 nodes, every other node has a third of its network interfaces in use.
func BenchmarkSameRails(b *testing.B) {
	constraint, err := gangfleet.Constraint(examples, "same_rails")
	require.NoError(b, err)
	for _, bench := range []struct {
		pods int
		want pod
	}{{16, pod{4, 4, false}}, {64, pod{8, 8, false}}, {64, pod{4, 4, false}}, {64, pod{1, 2, false}}} {
		b.Run(fmt.Sprintf("pods=%d/gpus=%d/nics=%d", bench.pods, bench.want.gpus, bench.want.nics), func(b *testing.B) {
			c := devicesCase{pods: []pod{bench.want}, group: nodeset.Group{Namespace: "default", Name: "g", Constraint: constraint, Kinds: []int{bench.pods}}}
			nodes, published := gangfleet.FatTree(25, 8).Objects()
			for i, node := range nodes {
				gpus, nics := published[i][0].Spec.Devices, published[i][1].Spec.Devices
				c.hosts = append(c.hosts, host{node, gpus, slices.DeleteFunc(nics, func(d resourceapi.Device) bool {
					return i%2 == 1 && (int(*d.Attributes["rail"].IntValue)*7+i)%3 == 0
				})})
			}
			for b.Loop() {
				chooser, err := nodeset.NewChooser(nil)
				require.NoError(b, err)
				chosen, failed := c.choose(b, chooser)
				require.False(b, failed)
				require.Len(b, chosen, bench.pods)
			}
		})
	}
}
