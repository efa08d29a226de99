// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// TestStripRemoves: a trait that was removed is gone, and only what the trait
// reports as removed has changed the case.
func TestStripRemoves(t *testing.T) {
	checkCases(t, func(t *rapid.T, _ Profile, c *Case) {
		for _, trait := range Traits {
			stripped := c.Clone()
			if !trait.Strip(stripped) {
				continue
			}
			require.False(t, equality.Semantic.DeepEqual(c, stripped), "%s: nothing changed", trait.Name)
			require.False(t, trait.Strip(stripped), "%s: still there", trait.Name)
		}
	})
}

func TestCloneIsDeep(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		c := Cases(CEL).Draw(t, "case")
		before := c.String()
		for _, trait := range Traits {
			trait.Strip(c.Clone())
		}
		require.Equal(t, before, c.String())
	})
}

func TestTraitNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, trait := range Traits {
		require.False(t, seen[trait.Name], trait.Name)
		seen[trait.Name] = true
	}
	for _, name := range rareTraits {
		require.True(t, seen[name], name)
	}
}

func TestFlip(t *testing.T) {
	c := &Case{}
	for _, gate := range Gates {
		flipped := gate.Flip(c)
		require.Equal(t, 1, flipped.Features.Set().Len(), gate.Name)
		require.Equal(t, c.Features, gate.Flip(flipped).Features, gate.Name)
	}
	require.Len(t, Gates, reflect.TypeFor[structured.Features]().NumField())
}

func TestStrip(t *testing.T) {
	c := &Case{
		Slices: []*resourceapi.ResourceSlice{{Spec: resourceapi.ResourceSliceSpec{
			AllNodes: ptr.To(true),
			Pool:     resourceapi.ResourcePool{Generation: latestGeneration - 1},
		}}},
		Claims: []*resourceapi.ResourceClaim{{}},
	}
	request := resourceapi.DeviceRequest{Exactly: &resourceapi.ExactDeviceRequest{
		AllocationMode: resourceapi.DeviceAllocationModeAll, AdminAccess: ptr.To(false)}}
	c.Claims[0].Spec.Devices.Requests = []resourceapi.DeviceRequest{request}
	c.Claims[0].Spec.Devices.Constraints = []resourceapi.DeviceConstraint{
		{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/ring"))}}
	var names []string
	for _, trait := range Traits {
		if trait.Strip(c.Clone()) {
			names = append(names, trait.Name)
		}
	}
	require.ElementsMatch(t, []string{"all devices", "CEL constraint", "older generation", "several pools"}, names)
}
