// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

const (
	sum = indices + ".sum()"
)

// The search first tries the upper bound. This takes few steps even if many sets are each slightly better than the last.
func TestTryingTheBoundSparesSteps(t *testing.T) {
	s := given(t, "devices 48 mla-# index=#; claim c; want r 8; prefer p = $indices.sum()")
	got, stats := s.answer(t, WithPreferenceBudget(1e8, 1e6))
	require.Equal(t, "r=mla-40", devicesOf(got.Results)[0])
	require.Equal(t, int64(1), stats.PreferencesBest)
	require.Less(t, stats.Steps, int64(4*8))
}

// If all sets have the smallest possible value for the first preference, the second preference chooses the set.
func TestSmallestValue(t *testing.T) {
	s := given(t, "devices 4 mla-# index=#; claim c; want r 1; prefer p = -9223372036854775808; prefer q = $indices.max()")
	s.requireDevices(t, "r=mla-3")
}

// Without preferences the allocator takes the first set. It ignores invalid preferences, and results cached with preferences.
func TestWithoutPreferences(t *testing.T) {
	cache := WithCache(NewCache())
	first := []string{"r=mla-0", "r=mla-1"}
	for _, constraint := range []string{"", "cel any = true; "} {
		s := given(t, "devices 8 mla-# index=#; claim c; want r 2; "+constraint+"prefer p = $indices.sum()").with(cache)
		s.requireDevices(t, "r=mla-6", "r=mla-7")
		s.Options = []option{cache, WithoutPreferences()}
		s.requireDevices(t, first...)
		_, details, err := s.allocator(t).AllocateWithDetails(t.Context(), s.OnNode(), s.APIClaims())
		require.NoError(t, err)
		require.Empty(t, details.Outcome)
		require.Empty(t, details.Preferences)
		s.Options = []option{cache}
		s.requireDevices(t, "r=mla-6", "r=mla-7")
	}
	given(t, "devices 8 mla-# index=#; claim c; want r 2; prefer p = devices.").with(WithoutPreferences()).requireDevices(t, first...)
}

// A preference that takes long never prevents an allocation. An attempt has one budget, and maybe another for preferences.
func TestAttemptBudgetLimitsPreferences(t *testing.T) {
	s := given(t, "devices 8 mla-# index=#; claim c; want r 4; prefer p = devices.slice(0, 4).map(d, $at.index).max()")
	first, best := []string{"r=mla-0", "r=mla-1", "r=mla-2", "r=mla-3"}, []string{"r=mla-0", "r=mla-1", "r=mla-2", "r=mla-7"}
	limited := func(steps int64) *AttemptBudget {
		budget := NewSeparateBudgets(Budget{Cost: 5_000_000, Steps: 1_000_000}, Budget{Cost: 1_000_000, Steps: steps})
		return budget
	}
	for _, test := range []struct {
		budget *AttemptBudget
		want   []string
		found  int64
	}{{limited(1_000_000), best, 0}, {limited(0), first, 1}, {NewAttemptBudget(Budget{Cost: 1_000_000}), first, 1}} {
		got, stats := s.answer(t, WithAttemptBudget(test.budget))
		require.Equal(t, test.want, devicesOf(got.Results))
		require.Equal(t, []int64{1 - test.found, test.found}, []int64{stats.PreferencesBest, stats.PreferencesBestFound})
	}
}

// having returns the scenario's claims after their allocation.
func (s scenario) having(t *testing.T) ([]*resourceapi.ResourceClaim, Details) {
	t.Helper()
	results, details, err := s.allocator(t).AllocateWithDetails(t.Context(), s.OnNode(), s.APIClaims())
	require.NoError(t, err)
	claims := s.APIClaims()
	for i := range claims {
		claims[i] = claims[i].DeepCopy()
		claims[i].Status.Allocation = &results[i]
	}
	return claims, details
}

// PolicyValues returns only values of policies, each for the chosen alternatives of the requests that the policy covers.
func TestPolicyValues(t *testing.T) {
	s := given(t, `class pairs; define pair = $pairs; policy; devices 8 mla-# index=#; allocated mla-2 mla-7; option keep-whole shape=pairs/pair/2
claim c; want r 2 class=pairs; want s 1 class=pairs; prefer p s = $indices.sum(); want t 1`)
	claims, details := s.having(t)
	told, err := s.allocator(t).PolicyValues(t.Context(), s.OnNode(), claims[0])
	require.NoError(t, err)
	require.Len(t, told, 2)
	require.Equal(t, []string{"p", "whole of DeviceClass pairs spec.config[1]", "default"},
		[]string{details.Preferences[0].Name, told[0].Name, told[1].Name})
	require.Equal(t, details.Preferences[1:], told)
	require.Equal(t, []ShapeLoss{{Shape: Shape{Class: "pairs", Constraint: "pair", Count: 2}, Lost: 1, Left: 1}}, told[0].Losses)

	// With a prioritized list, the policy covers the chosen alternative.
	list := claim("c").FirstAvailable("r", sub("many", 9), sub("one", 1))
	s.Claims = []*claimBuilder{list}
	alternative, details := s.having(t)
	told, err = s.allocator(t).PolicyValues(t.Context(), s.OnNode(), alternative[0])
	require.NoError(t, err)
	require.Equal(t, details.Preferences, told)
	require.Equal(t, "r/one", alternative[0].Status.Allocation.Devices.Results[0].Request)

	// A missing device is an error. It does not count as a free device.
	claims[0].Status.Allocation.Devices.Results[1].Device = "gone"
	_, err = s.allocator(t).PolicyValues(t.Context(), s.OnNode(), claims[0])
	require.ErrorContains(t, err, "/gone is not a device of node")

	// Without a policy, PolicyValues returns nothing and does not search.
	s.Options, s.Claims = nil, []*claimBuilder{claim("c").Want("r", 1).Prefer("p", sum)}
	told, err = s.allocator(t).PolicyValues(t.Context(), s.OnNode(), s.APIClaims()[0])
	require.NoError(t, err)
	require.Empty(t, told)
}
