// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

var profiles = map[string]Profile{
	"Beta": Beta, "Alpha": Alpha, "Hopeless": Hopeless, "Sound": Sound, "CEL": CEL, "FailingCEL": FailingCEL, "HopelessCEL": HopelessCEL,
}

// checkCases checks that cases of all profiles have a property.
func checkCases(t *testing.T, property func(*rapid.T, Profile, *Case)) {
	for name, profile := range profiles {
		t.Run(name, func(t *testing.T) {
			cases.CheckN(t, cases.Of(100, 1000), func(t *rapid.T) { property(t, profile, Cases(profile).Draw(t, "case")) })
		})
	}
}

func TestCasesKeepLimits(t *testing.T) {
	checkCases(t, func(t *rapid.T, profile Profile, c *Case) {
		devices, requests := 0, 0
		c.Devices(func(*resourceapi.ResourceSlice, *resourceapi.Device) { devices++ })
		limit := profile.MaxDevices
		if profile.Faults && devices > limit {
			limit += crowdSize
		}
		for _, claim := range c.Claims {
			requests += len(claim.Spec.Devices.Requests)
		}
		require.LessOrEqual(t, devices, limit)
		require.LessOrEqual(t, requests, profile.MaxRequests)
	})
}

func TestReferencesResolve(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{CacheBytes: 4 << 30})
	require.NoError(t, err)
	checkCases(t, func(t *rapid.T, profile Profile, c *Case) {
		references := 0
		for _, claim := range c.Claims {
			constraints, err := v1alpha1.Resolve(claim, ClassLister(c.Classes))
			require.NoError(t, err)
			references += len(constraints)
			for _, constraint := range constraints {
				_, err := environment.Compile(t.Context(), constraint.Expression, constraint.Variables...)
				require.NoError(t, err, constraint.Expression)
			}
		}
		require.True(t, profile.CELConstraints || references == 0, "%d references", references)
		require.True(t, !profile.FailingExpression || references <= 1, "%d references", references)
	})
}

func TestSelectorsCompile(t *testing.T) {
	cache := dracel.NewCache(1000, dracel.Features{})
	checkCases(t, func(t *rapid.T, profile Profile, c *Case) {
		if profile.Faults {
			return
		}
		edit(allRequests+".Selectors", func(s *resourceapi.DeviceSelector) bool {
			compiled := cache.GetOrCompile(s.CEL.Expression)
			require.Nil(t, compiled.Error, s.CEL.Expression)
			return false
		})(c)
	})
}

// TestPlainest checks the smallest case. Shrinking ends with this case, so it should be readable.
func TestPlainest(t *testing.T) {
	rapid.MakeFuzz(func(t *rapid.T) {
		c := Cases(CEL).Draw(t, "case")
		require.Len(t, c.Claims, 1)
		require.Len(t, c.Claims[0].Spec.Devices.Requests, 1)
		require.Empty(t, c.Allocated)
		exactly := c.Claims[0].Spec.Devices.Requests[0].Exactly
		require.Equal(t, int64(1), exactly.Count)
		require.Empty(t, exactly.Selectors)
		require.False(t, has(allDevices+".Taints")(c))
	})(t, make([]byte, 1<<16))
}

// TestStripRemoves checks that Strip removes a trait, and that Strip returns true if and only if it changed the case.
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

func TestFlip(t *testing.T) {
	c := &Case{}
	for _, gate := range Gates {
		flipped := gate.Flip(c)
		require.Equal(t, 1, flipped.Features.Set().Len(), gate.Name)
		require.Equal(t, c.Features, gate.Flip(flipped).Features, gate.Name)
	}
	require.Len(t, Gates, reflect.TypeFor[structured.Features]().NumField())
}

func TestYAMLRoundTrip(t *testing.T) {
	checkCases(t, func(t *rapid.T, _ Profile, c *Case) {
		parsed, err := Parse([]byte(c.String()))
		require.NoError(t, err)
		// Semantic.DeepEqual treats nil and empty alike, as allocators do.
		if !equality.Semantic.DeepEqual(c, parsed) {
			require.Fail(t, "difference after a round trip (-drawn +parsed)", cmp.Diff(c, parsed))
		}
	})
}
