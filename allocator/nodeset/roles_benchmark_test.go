// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// BenchmarkRoles chooses nodes for a group with the roles prefill and decode, among 1,000 nodes in spines of 250 and racks of 25. Only
// the nodes of the last spine or rack are enough for the group.
func BenchmarkRoles(b *testing.B) {
	const prefill, decode = "nodes.filter(n, n.pod.labels['role'] == 'prefill')", "nodes.filter(n, n.pod.labels['role'] == 'decode')"
	for _, bench := range []struct {
		name, expression string
		kinds            []int
		free             func(i int) bool
		none             bool
	}{
		{"12-in-one-rack", "nodes.map(n, n.labels['rack']).distinct().size() == 1", []int{4, 8}, func(i int) bool { return i%25 < 11 || i >= 975 }, false},
		{"12-in-no-rack", "nodes.map(n, n.labels['rack']).distinct().size() == 1", []int{4, 8}, func(i int) bool { return i%25 < 11 }, true},
		{"12-each-role-in-a-rack-of-one-spine", prefill + ".map(n, n.labels['rack']).distinct().size() == 1 && " + decode + ".map(n, n.labels['rack']).distinct().size() == 1 && nodes.map(n, n.labels['spine']).distinct().size() == 1",
			[]int{4, 8}, func(i int) bool { return i%25 < 7 || i >= 950 }, false},
		{"256-in-one-spine", "nodes.map(n, n.labels['spine']).distinct().size() == 1", []int{64, 192}, func(i int) bool { return i%50 > 0 || i >= 700 }, false},
		{"256-in-no-spine", "nodes.map(n, n.labels['spine']).distinct().size() == 1", []int{64, 192}, func(i int) bool { return i%50 > 0 && (i < 700 || i%6 > 0) }, true},
		{"64-prefill-beside-decode", "nodes.all(n, n.pod.labels['role'] == 'decode' || nodes.exists(o, o.pod.labels['role'] == 'decode' && o.labels['rack'] == n.labels['rack']))", []int{16, 48}, func(i int) bool { return i%3 > 0 }, false},
	} {
		group := nodeset.Group{
			Namespace: "default", Name: "g", Kinds: bench.kinds, ReadsPods: true,
			Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: bench.expression + " && nodes.all(n, 'role' in n.pod.labels)", PodsPerNode: 1},
			Pods:       []device.OfPod{{Labels: map[string]string{"role": "prefill"}}, {Labels: map[string]string{"role": "decode"}}},
		}
		var nodes []nodeset.Node
		for i := range 1000 {
			spine := min(i/250, 3)
			if i >= 700 {
				spine = 3
			}
			nodes = append(nodes, nodeset.Node{
				Name: fmt.Sprintf("n%04d", i), Labels: map[string]string{"rack": fmt.Sprint(i / 25), "spine": fmt.Sprint(spine)}, Takes: []bool{bench.free(i), bench.free(i)},
			})
		}
		b.Run(bench.name, func(b *testing.B) {
			chooser, err := nodeset.NewChooser(nil)
			require.NoError(b, err)
			known := map[string]*allocator.PreparedClaim{}
			compiled := func(ctx context.Context, p *nodeset.Problem) (*allocator.PreparedClaim, error) {
				if known[string(p.Claim.UID)] == nil {
					known[string(p.Claim.UID)], err = chooser.Prepare(ctx, p.Claim, nodeset.Classes{}, true)
				}
				return known[string(p.Claim.UID)], err
			}
			for b.Loop() {
				search := &nodeset.Search{Chooser: chooser, Group: &group, Nodes: nodes, Compiled: compiled}
				search.Options, _ = nodeset.Limits()
				choice, err := search.Choose(b.Context())
				require.NoError(b, err)
				require.Equal(b, bench.none, choice == nil)
			}
		})
	}
}
