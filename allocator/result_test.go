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
)

func TestResultsOfDevices(t *testing.T) {
	tolerations := []resourceapi.DeviceToleration{{Key: "k", Operator: resourceapi.DeviceTolerationOpExists}}
	bound := newDevice("bound", nil, func(d *resourceapi.Device) {
		d.BindingConditions, d.BindingFailureConditions = []string{"ready"}, []string{"broken"}
	})
	node := newNode(nodeName)
	node.Status.DeclaredFeatures = []string{declaresOptionalNodeOperations}
	skip := slice("2").edit(func(s *resourceapi.ResourceSliceSpec) {
		s.SkipNodeOperations = []resourceapi.SkipNodeOperation{"Prepare"}
		s.Devices = []resourceapi.Device{newDevice("skips", nil)}
	}).pool("pool-2", 1, 1).driver("nic.example.com")
	s := scenario{
		node:   node,
		slices: []*sliceBuilder{slice("1", ring(1)...), skip, slice("3", bound).pool("pool-3", 1, 1)},
		claims: []*claimBuilder{
			claim("a").want("x", 1).want("y", 1).edit(func(r *resourceapi.ExactDeviceRequest) { r.Tolerations = tolerations }),
			claim("b").want("z", 1).want("admin", 1).admin(),
		},
	}
	results, err := s.allocate(t)
	require.NoError(t, err)
	want := [][]resourceapi.DeviceRequestAllocationResult{
		{
			{Request: "x", Driver: driver, Pool: "pool-1", Device: "mla-0"},
			{Request: "y", Driver: "nic.example.com", Pool: "pool-2", Device: "skips", Tolerations: tolerations, SkipNodeOperations: skip.Spec.SkipNodeOperations},
		},
		{
			{Request: "z", Driver: driver, Pool: "pool-3", Device: "bound", BindingConditions: []string{"ready"}, BindingFailureConditions: []string{"broken"}},
			{Request: "admin", Driver: driver, Pool: "pool-1", Device: "mla-0", AdminAccess: ptr.To(true)},
		},
	}
	require.Len(t, results, 2)
	for i := range want {
		require.Empty(t, cmp.Diff(want[i], results[i].Devices.Results))
	}
}

func TestClaimWithoutDevices(t *testing.T) {
	results, err := scenario{claims: []*claimBuilder{claim("empty"), claim("none").want("x", 0)}}.allocate(t)
	require.NoError(t, err)
	require.Len(t, results, 2)
	for _, result := range results {
		require.Empty(t, result.Devices.Results)
		require.Nil(t, result.NodeSelector)
	}
	results, err = scenario{}.allocate(t)
	require.NoError(t, err)
	require.NotNil(t, results, "no claims are satisfied, which is not the same as not fitting")
	require.Empty(t, results)
}

func TestConfiguration(t *testing.T) {
	class := func(name string, texts ...string) *resourceapi.DeviceClass {
		c := classOf(name)
		for _, text := range texts {
			c.Spec.Config = append(c.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: parameters(driver, text)})
		}
		return c
	}
	c := claim("c").
		want("x", 1).class("a").want("y", 1).class("b").want("z", 1).class("a").
		configure(parameters(driver, "for all")).
		configure(parameters(driver, "for y"), "y").
		configure(parameters(driver, "for each"), "z", "y", "x").
		configure(parameters(driver, "for unknown"), "unknown").
		define("unused", "true")
	results, err := scenario{
		classes: []*resourceapi.DeviceClass{class("a", "a1", "a2"), class("b", "b1")},
		slices:  []*sliceBuilder{slice("1", ring(3)...)},
		claims:  []*claimBuilder{c, claim("d").want("x", 2).class("b")},
	}.allocate(t)
	require.NoError(t, err)
	require.Nil(t, results) // three devices, five wanted

	results, err = scenario{
		classes: []*resourceapi.DeviceClass{class("a", "a1", "a2"), class("b", "b1")},
		slices:  []*sliceBuilder{slice("1", ring(5)...)},
		claims:  []*claimBuilder{c, claim("d").want("x", 2).class("b")},
	}.allocate(t)
	require.NoError(t, err)

	entry := func(source resourceapi.AllocationConfigSource, text string, requests ...string) resourceapi.DeviceAllocationConfiguration {
		return resourceapi.DeviceAllocationConfiguration{Source: source, Requests: requests, DeviceConfiguration: parameters(driver, text)}
	}
	const fromClass, fromClaim = resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim
	unused := entry(fromClaim, "")
	unused.DeviceConfiguration = definitionOf("unused", "true")
	require.Empty(t, cmp.Diff([]resourceapi.DeviceAllocationConfiguration{
		entry(fromClass, "a1", "x", "z"),
		entry(fromClass, "a2", "x", "z"),
		entry(fromClass, "b1", "y"),
		entry(fromClaim, "for all"),
		entry(fromClaim, "for y", "y"),
		entry(fromClaim, "for each"),
		unused,
	}, results[0].Devices.Config))
	require.Empty(t, cmp.Diff([]resourceapi.DeviceAllocationConfiguration{entry(fromClass, "b1")}, results[1].Devices.Config))
}

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
	chosen := &candidate{device: &d, slice: slice("1", d).edit(func(s *resourceapi.ResourceSliceSpec) { s.NodeName, s.NodeSelector = nil, &v1.NodeSelector{} }).ResourceSlice}
	selector, err := nodeSelector(nodeName, []choice{{candidate: chosen}})
	require.NoError(t, err)
	require.Nil(t, selector)
}
