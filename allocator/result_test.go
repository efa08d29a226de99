// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

func TestResultsOfDevices(t *testing.T) {
	tolerations := []resourceapi.DeviceToleration{{Key: "k", Operator: resourceapi.DeviceTolerationOpExists}}
	bound := newDevice("bound", nil, func(d *resourceapi.Device) {
		d.BindingConditions, d.BindingFailureConditions = []string{"ready"}, []string{"broken"}
	})
	node := newNode(nodeName)
	node.Status.DeclaredFeatures = []string{"DRAOptionalNodeOperations"}
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

// Of alternatives only the one that was chosen counts. It goes by both names.
func TestConfigurationOfAlternatives(t *testing.T) {
	class := func(name string) *resourceapi.DeviceClass {
		c := classOf(name)
		c.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: parameters(driver, "of class "+name)}}
		return c
	}
	c := claim("c").
		firstAvailable("x", subOf("a", "none", 9), subOf("b", "one", 1)).
		firstAvailable("y", subOf("b", "one", 1), subOf("a", "two", 2)).
		want("z", 1).class("a").
		configure(parameters(driver, "for x"), "x").
		configure(parameters(driver, "for x/none"), "x/none").
		configure(parameters(driver, "for x/one"), "x/one").
		configure(parameters(driver, "for one"), "one").
		configure(parameters(driver, "for each"), "z", "y/one", "y/two", "x").
		configure(parameters(driver, "for each or so"), "z", "y/two", "x")
	results, err := scenario{
		classes: []*resourceapi.DeviceClass{class("a"), class("b")},
		slices:  []*sliceBuilder{slice("1", ring(3)...)},
		claims:  []*claimBuilder{c, claim("d").firstAvailable("x", subOf("b", "none", 0), subOf("a", "one", 1))},
	}.allocate(t)
	require.NoError(t, err)
	require.Equal(t, []string{"x/one=mla-0", "y/one=mla-1", "z=mla-2"}, devicesOf(results))
	entry := func(source resourceapi.AllocationConfigSource, text string, requests ...string) resourceapi.DeviceAllocationConfiguration {
		return resourceapi.DeviceAllocationConfiguration{Source: source, Requests: requests, DeviceConfiguration: parameters(driver, text)}
	}
	const fromClass, fromClaim = resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim
	require.Empty(t, cmp.Diff([]resourceapi.DeviceAllocationConfiguration{
		entry(fromClass, "of class b", "x/one", "y/one"),
		entry(fromClass, "of class a", "z"),
		entry(fromClaim, "for x", "x"),
		entry(fromClaim, "for x/one", "x/one"),
		entry(fromClaim, "for each"),
		entry(fromClaim, "for each or so", "z", "y/two", "x"),
	}, results[0].Devices.Config))
	require.Empty(t, cmp.Diff([]resourceapi.DeviceAllocationConfiguration{entry(fromClass, "of class b")}, results[1].Devices.Config))
}
