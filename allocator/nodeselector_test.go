// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/inventory"
)

func TestNodeSelectorOfResult(t *testing.T) {
	here := onlyOn(nodeName)
	perDevice := func(edits ...func(*resourceapi.Device)) *sliceBuilder {
		var devices []resourceapi.Device
		for i, edit := range edits {
			devices = append(devices, newDevice(string(rune('a'+i)), nil, edit))
		}
		return slice("p", devices...).pool("p", 1, 1).perDevice()
	}
	everywhere := func(d *resourceapi.Device) { d.AllNodes = ptr.To(true) }
	expression := func(key string, values ...string) v1.NodeSelectorRequirement {
		return v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}
	}
	selecting := func(name string, term v1.NodeSelectorTerm) *sliceBuilder {
		return slice(name, newDevice("a", nil)).pool(name, 1, 1).edit(func(s *resourceapi.ResourceSliceSpec) {
			s.NodeName, s.NodeSelector = nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}
		})
	}
	node := newNode(nodeName, "fast", "near")
	node.Labels["zone"], node.Labels["rack"] = "z1", "r1"
	for name, test := range map[string]struct {
		slices []*sliceBuilder
		want   *v1.NodeSelector
	}{
		"local":            {[]*sliceBuilder{slice("1", newDevice("a", nil), newDevice("b", nil))}, here},
		"everywhere":       {[]*sliceBuilder{slice("1", newDevice("a", nil), newDevice("b", nil)).everywhere()}, nil},
		"local and not":    {[]*sliceBuilder{slice("1", newDevice("a", nil)), slice("2", newDevice("a", nil)).pool("x", 1, 1).onNodesWith("fast")}, here},
		"binds to node":    {[]*sliceBuilder{slice("1", newDevice("a", nil), newDevice("b", nil, func(d *resourceapi.Device) { d.BindsToNode = ptr.To(true) })).everywhere()}, here},
		"same selector":    {[]*sliceBuilder{slice("1", newDevice("a", nil), newDevice("b", nil)).onNodesWith("fast")}, nodesWith("fast")},
		"selectors":        {[]*sliceBuilder{slice("1", newDevice("a", nil)).pool("x", 1, 1).onNodesWith("fast"), slice("2", newDevice("a", nil)).pool("y", 1, 1).onNodesWith("near", "fast")}, nodesWith("fast", "near")},
		"per device":       {[]*sliceBuilder{perDevice(everywhere, func(d *resourceapi.Device) { d.NodeSelector = nodesWith("fast") })}, nodesWith("fast")},
		"per device, name": {[]*sliceBuilder{perDevice(everywhere, func(d *resourceapi.Device) { d.NodeName = ptr.To(nodeName) })}, here},
		"values are sets": {
			[]*sliceBuilder{
				selecting("x", v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{expression("zone", "z1", "z2")}}),
				selecting("y", v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{expression("zone", "z2", "z1"), expression("rack", "r1")}}),
			},
			&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{expression("zone", "z1", "z2"), expression("rack", "r1")},
			}}},
		},
		"fields": {
			[]*sliceBuilder{
				selecting("x", v1.NodeSelectorTerm{MatchFields: here.NodeSelectorTerms[0].MatchFields}),
				selecting("y", v1.NodeSelectorTerm{MatchFields: here.NodeSelectorTerms[0].MatchFields}),
			},
			here,
		},
	} {
		t.Run(name, func(t *testing.T) {
			results, err := scenario{slices: test.slices, node: node, claims: []*claimBuilder{claim("c").want("x", 2)}}.allocate(t)
			require.NoError(t, err)
			require.Len(t, results, 1)
			require.Empty(t, cmp.Diff(test.want, results[0].NodeSelector))
		})
	}
}

func TestNodeSelectorWithSeveralTerms(t *testing.T) {
	two := nodesWith("fast")
	two.NodeSelectorTerms = append(two.NodeSelectorTerms, nodesWith("near").NodeSelectorTerms...)
	scenario{
		node:   newNode(nodeName, "fast"),
		slices: []*sliceBuilder{slice("1", ring(1)...).edit(func(s *resourceapi.ResourceSliceSpec) { s.NodeName, s.NodeSelector = nil, two })},
		claims: []*claimBuilder{claim("c").want("x", 1)},
	}.requireError(t, "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms")
}

// A selector without terms can't come from an API server. It matches no node,
// but must not be taken for one that ties the device to a place either.
func TestNodeSelectorWithoutTerms(t *testing.T) {
	d := newDevice("a", nil)
	chosen := &inventory.Candidate{Device: &d, Slice: slice("1", d).edit(func(s *resourceapi.ResourceSliceSpec) { s.NodeName, s.NodeSelector = nil, &v1.NodeSelector{} }).ResourceSlice}
	selector, err := nodeSelector(nodeName, []choice{{Candidate: chosen}})
	require.NoError(t, err)
	require.Nil(t, selector)
}
