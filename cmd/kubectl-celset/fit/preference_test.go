// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
)

// TestPreferencesOfSeveralClaims: what is told names the claim.
func TestPreferencesOfSeveralClaims(t *testing.T) {
	s := state()
	claim := s.Claims[1]
	entry := func(name, expression string) resourceapi.DeviceClaimConfiguration {
		c := resourceapi.DeviceClaimConfiguration{}
		c.Opaque = &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName}
		c.Opaque.Parameters.Raw = []byte(`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDevicePreference", "name": "` + name + `", "expression": "` + expression + `"}`)
		return c
	}
	claim.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{entry("p", "devices.filter(d, d.attributes['d'].?good.orValue(false)).size()"), entry("q", "7")}
	other := claim.DeepCopy()
	other.Name = "wants-too"
	other.Spec.Devices.Config = other.Spec.Devices.Config[1:]
	s.Claims = append(s.Claims, other)
	s.Pods[0].Spec.ResourceClaims = []corev1.PodResourceClaim{
		{Name: "a", ResourceClaimName: ptr.To("wants")}, {Name: "b", ResourceClaimName: ptr.To("wants-too")},
	}
	s.Slices(false)[0].Spec.Devices = []resourceapi.Device{{Name: "dev"}, {Name: "good", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"good": {BoolValue: ptr.To(true)}}}}
	result := run(t, s, "pod/p", "node-1")
	node := result.Nodes[0]
	require.Equal(t, "good", node.Claims[0].Devices[0].Device)
	require.Equal(t, allocator.PreferenceBest, node.Outcome)
	require.Equal(t, []fit.PreferenceValue{
		{Claim: "ns/wants", Name: "p", Value: 1}, {Claim: "ns/wants", Name: "q", Value: 7}, {Claim: "ns/wants-too", Name: "q", Value: 7},
	}, node.Preferences)
	var text strings.Builder
	require.NoError(t, result.Print(&text))
	require.Contains(t, text.String(), "\n    best by p (claim ns/wants): 1, then q (claim ns/wants): 7, then q (claim ns/wants-too): 7\n")

	claim.Spec.Devices.Config[0] = entry("p", "devices.filter(d, d.attributes['d'].good).size()")
	result = run(t, s, "pod/p", "node-1")
	require.False(t, result.Fits())
	require.Contains(t, result.Error, "preference p, node node-1, devices [d/node-1/dev]")
}

// TestKeepWhole: what it counts is told, with the shapes that the claims ask for.
func TestKeepWhole(t *testing.T) {
	s := state()
	entry := resourceapi.DeviceClassConfiguration{}
	entry.Opaque = &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName}
	entry.Opaque.Parameters.Raw = []byte(`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "pair", "expression": "devices.map(d, d.attributes['d'].bridge).distinct().size() == 1"}`)
	s.Objects.Classes[0].Spec.Config = append(s.Objects.Classes[0].Spec.Config, entry)
	bridge := func(n int64) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
		return map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"bridge": {IntValue: ptr.To(n)}}
	}
	s.Slices(false)[0].Spec.Devices = []resourceapi.Device{{Name: "a", Attributes: bridge(1)}, {Name: "b", Attributes: bridge(1)}, {Name: "alone", Attributes: bridge(2)}}
	asks := s.Claims[1].DeepCopy()
	asks.Name = "asks"
	asks.Spec.Devices.Requests[0].Exactly.Count = 2
	asks.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/pair"))}}
	s.Claims = append(s.Claims, asks)
	keeping := resourceapi.DeviceClaimConfiguration{}
	keeping.Opaque = &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName}
	keeping.Opaque.Parameters.Raw = []byte(`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDevicePreference", "name": "whole", "policy": "KeepWhole"}`)
	s.Claims[1].Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{keeping}
	result := run(t, s, "pod/p", "node-1")
	require.Equal(t, "alone", result.Nodes[0].Claims[0].Devices[0].Device)
	var text strings.Builder
	require.NoError(t, result.Print(&text))
	require.Contains(t, text.String(), "\n    best by whole: breaks 0 of 1 sets of 2 (constraint pair of class "+s.Objects.Classes[0].Name+")\n")
}
