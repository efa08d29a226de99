// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// having are claims with the devices that they are allocated.
func (s scenario) having(t *testing.T) ([]*resourceapi.ResourceClaim, Details) {
	t.Helper()
	results, details, err := s.allocator(t).AllocateWithDetails(t.Context(), s.onNode(), s.apiClaims())
	require.NoError(t, err)
	claims := s.apiClaims()
	for i := range claims {
		claims[i] = claims[i].DeepCopy()
		claims[i].Status.Allocation = &results[i]
	}
	return claims, details
}

// Of preferences only policies are told, each of the requests that it is about, of prioritized lists
// the alternative that was met.
func TestPolicyValues(t *testing.T) {
	pairs := shaped("pairs", definitionOf("pair", inPairs), keepingWhole())
	s := scenario{
		slices: eight(), classes: []*resourceapi.DeviceClass{pairs}, inUse: []string{"mla-2", "mla-7"},
		claims: []*claimBuilder{claim("c").want("r", 2).class("pairs").want("s", 1).class("pairs").prefer("p", sum, "s").want("t", 1)},
		opts:   []Option{WithDefaultPreference(v1alpha1.PolicyKeepWhole), WithShapes([]Shape{{"pairs", "pair", 2}})},
	}
	claims, details := s.having(t)
	told, err := s.allocator(t).PolicyValues(t.Context(), s.onNode(), claims[0])
	require.NoError(t, err)
	require.Len(t, told, 2)
	require.Equal(t, []string{"p", "whole of DeviceClass pairs spec.config[1]", "default"},
		[]string{details.Preferences[0].Name, told[0].Name, told[1].Name})
	require.Equal(t, details.Preferences[1:], told)
	require.Equal(t, []ShapeLoss{{Shape{"pairs", "pair", 2}, 1, 1}}, told[0].Losses)

	// Of a prioritized list it is about what was met.
	list := claim("c").firstAvailable("r", sub("many", 9), sub("one", 1))
	s.claims = []*claimBuilder{list}
	alternative, details := s.having(t)
	told, err = s.allocator(t).PolicyValues(t.Context(), s.onNode(), alternative[0])
	require.NoError(t, err)
	require.Equal(t, details.Preferences, told)
	require.Equal(t, "r/one", alternative[0].Status.Allocation.Devices.Results[0].Request)

	// What is not there any more is an error, and not taken for free.
	claims[0].Status.Allocation.Devices.Results[1].Device = "gone"
	_, err = s.allocator(t).PolicyValues(t.Context(), s.onNode(), claims[0])
	require.ErrorContains(t, err, "/gone, which it has, is not among those of node")

	// Without a policy nothing is told, nor looked for.
	s.opts, s.claims = nil, []*claimBuilder{claim("c").want("r", 1).prefer("p", sum)}
	told, err = s.allocator(t).PolicyValues(t.Context(), s.onNode(), s.apiClaims()[0])
	require.NoError(t, err)
	require.Empty(t, told)
}
