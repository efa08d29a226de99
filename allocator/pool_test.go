// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/inventory"
)

func TestPools(t *testing.T) {
	one := func(name string) resourceapi.Device { return newDevice(name, nil) }
	for name, test := range map[string]struct {
		slices []*sliceBuilder
		node   *v1.Node
		// want are the devices in order, or the state of a pool without devices.
		want []string
	}{
		"none": {},
		"by driver, pool, slice, position": {
			slices: []*sliceBuilder{
				slice("1", one("z1")).driver("z.example.com").pool("p1", 1, 1),
				slice("2", one("b2")).pool("p2", 1, 2),
				slice("1", one("b1"), one("a1")).pool("p2", 1, 2),
				slice("9", one("p1")).pool("p1", 1, 1),
				slice("1", one("a1")).driver("a.example.com").pool("p9", 1, 1),
			},
			want: []string{"a.example.com/p9/a1", "mla.example.com/p1/p1", "mla.example.com/p2/b1", "mla.example.com/p2/a1", "mla.example.com/p2/b2", "z.example.com/p1/z1"},
		},
		"binding conditions last": {
			slices: []*sliceBuilder{
				slice("1", newDevice("a", nil, func(d *resourceapi.Device) { d.BindingConditions = []string{} })).pool("p1", 1, 1),
				slice("2", one("b")).pool("p2", 1, 1),
			},
			want: []string{"mla.example.com/p2/b", "mla.example.com/p1/a"},
		},
		"same pool name, two drivers": {
			slices: []*sliceBuilder{slice("1", one("a")), slice("2", one("a")).driver("other.example.com")},
			want:   []string{"mla.example.com/pool-1/a", "other.example.com/pool-1/a"},
		},
		"latest generation": {
			slices: []*sliceBuilder{
				slice("1", one("old")).pool("p", 1, 1), slice("2", one("new")).pool("p", 2, 1), slice("3", one("older")).pool("p", 0, 1),
			},
			want: []string{"mla.example.com/p/new"},
		},
		"newer generation for another node": {
			slices: []*sliceBuilder{
				// Not the full count, so that the other nodes' slices are looked at.
				slice("1", one("old")).pool("p", 1, 2),
				slice("2", one("new")).pool("p", 2, 2).onNode("node-2"),
			},
		},
		"slice missing": {
			slices: []*sliceBuilder{slice("1", one("a")).pool("p", 1, 2)},
			want:   []string{"mla.example.com/p incomplete"},
		},
		"slice too many": {
			slices: []*sliceBuilder{slice("1", one("a")).pool("p", 1, 1), slice("2", one("b")).pool("p", 1, 1)},
			want:   []string{"mla.example.com/p incomplete"},
		},
		"complete with the slices of other nodes": {
			slices: []*sliceBuilder{
				slice("1", one("a")).pool("p", 1, 2), slice("2", one("b")).pool("p", 1, 2).onNode("node-2"),
				slice("3", one("c")).pool("q", 1, 2).onNode("node-2"), slice("4", one("d")).driver("other.example.com").pool("p", 1, 2).onNode("node-2"),
			},
			want: []string{"mla.example.com/p/a"},
		},
		"duplicate device": {
			slices: []*sliceBuilder{slice("1", one("a")).pool("p", 1, 2), slice("2", one("a")).pool("p", 1, 2)},
			want:   []string{"mla.example.com/p invalid: duplicate device name a"},
		},
		"duplicate device on another node": {
			slices: []*sliceBuilder{slice("1", one("a")).pool("p", 1, 2), slice("2", one("a")).pool("p", 1, 2).onNode("node-2")},
			want:   []string{"mla.example.com/p/a"},
		},
		"other node": {
			slices: []*sliceBuilder{slice("1", one("a")).onNode("node-2")},
		},
		"all nodes": {
			slices: []*sliceBuilder{slice("1", one("a")).everywhere()},
			want:   []string{"mla.example.com/pool-1/a"},
		},
		"node selector": {
			slices: []*sliceBuilder{
				slice("1", one("a")).pool("p", 1, 1).onNodesWith("fast"), slice("2", one("b")).pool("q", 1, 1).onNodesWith("slow"),
			},
			node: newNode(nodeName, "fast"),
			want: []string{"mla.example.com/p/a"},
		},
		"no node selection that is known": {
			slices: []*sliceBuilder{slice("1", one("a")).edit(func(s *resourceapi.ResourceSliceSpec) { s.NodeName = nil })},
		},
		"per device": {
			slices: []*sliceBuilder{slice("1",
				newDevice("here", nil, func(d *resourceapi.Device) { d.NodeName = ptr.To(nodeName) }),
				newDevice("there", nil, func(d *resourceapi.Device) { d.NodeName = ptr.To("node-2") }),
			).perDevice()},
			// All of the slice: which devices are for the node is decided later.
			want: []string{"mla.example.com/pool-1/here", "mla.example.com/pool-1/there"},
		},
		"per device, none": {
			slices: []*sliceBuilder{slice("1",
				newDevice("there", nil, func(d *resourceapi.Device) { d.NodeName = ptr.To("node-2") }),
			).perDevice()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, describePools(t, allOn, test.node, test.slices))
		})
	}
}

// describePools lists devices and the pools that have none.
func describePools(t *testing.T, features structured.Features, node *v1.Node, builders []*sliceBuilder) []string {
	t.Helper()
	s := scenario{slices: builders, node: node}
	a := s.allocator(t)
	has, err := inventory.New(features, s.onNode(), a.allSlices, a.allSlices)
	require.NoError(t, err)
	var result []string
	for _, p := range has.Pools {
		switch {
		case p.Incomplete:
			result = append(result, p.String()+" incomplete")
		case p.Invalid != "":
			result = append(result, p.String()+" invalid: "+p.Invalid)
		}
		for _, c := range has.Candidates {
			if c.Pool == p {
				result = append(result, c.ID.String())
			}
		}
	}
	return result
}

func TestNodeSelectionErrors(t *testing.T) {
	broken := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: "fast", Operator: "Resembles"}},
	}}}
	scenario{
		slices: []*sliceBuilder{slice("slice-1").edit(func(s *resourceapi.ResourceSliceSpec) { s.NodeName, s.NodeSelector = nil, broken })},
	}.requireError(t, "gather pool information: ResourceSlice slice-1: node selection: ")
	scenario{
		slices: []*sliceBuilder{slice("slice-1", newDevice("a", nil, func(d *resourceapi.Device) { d.NodeSelector = broken })).perDevice()},
	}.requireError(t, "gather pool information: ResourceSlice slice-1: device a: node selection: ")
}

func TestAllocationFromUnusablePools(t *testing.T) {
	four := claim("c").want("mla", 1)
	t.Run("incomplete is none", func(t *testing.T) {
		scenario{slices: []*sliceBuilder{slice("1", ring(1)...).pool("p", 1, 2)}, claims: []*claimBuilder{four}}.requireNone(t)
	})
	invalid := slice("1", newDevice("a", nil), newDevice("a", nil)).pool("p", 1, 1)
	t.Run("invalid is an error on the node", func(t *testing.T) {
		scenario{slices: []*sliceBuilder{invalid}, claims: []*claimBuilder{four}}.
			requireErrorOnNode(t, "invalid resource pools were encountered")
	})
	t.Run("invalid does not matter if there is another pool", func(t *testing.T) {
		scenario{slices: []*sliceBuilder{invalid, slice("2", ring(1)...)}, claims: []*claimBuilder{four}}.requireDevices(t, "mla=mla-0")
	})
}
