// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

// Mistakes in preferences are found without a device, wherever the preference is defined, with or
// without a constraint beside it.
func TestCheckConstraintsChecksPreferences(t *testing.T) {
	for name, test := range map[string]struct {
		claim   *claimBuilder
		classes []*resourceapi.DeviceClass
		want    string
	}{
		"right":         {claim: claim("c").want("r", 2).prefer("p", sum)},
		"right, of one": {claim: claim("c").want("r", 1).class("high"), classes: []*resourceapi.DeviceClass{classPreferring("high", "p", sum)}},
		"type": {
			claim: claim("c").want("r", 2).prefer("p", "true"),
			want:  "claim default/c, preference p (ResourceClaim default/c spec.devices.config[0]): ERROR: <input>:1:1: the expression must return int, it returns bool",
		},
		"syntax, beside a constraint": {
			claim: claim("c").want("r", 2).cel("even").define("even", "true").prefer("p", "devices."),
			want:  "preference p (ResourceClaim default/c spec.devices.config[1]): ERROR: <input>:1:9: Syntax error",
		},
		"empty":   {claim: claim("c").want("r", 2).prefer("p", ""), want: "ResourceClaim default/c: spec.devices.config[0].opaque.parameters.expression: Required value"},
		"request": {claim: claim("c").want("r", 2).prefer("p", sum, "other"), want: `spec.devices.config[0].opaque.parameters.requests[0]: `},
		"of the class": {
			claim: claim("c").want("r", 2).class("high"), classes: []*resourceapi.DeviceClass{classPreferring("high", "p", "1.5")},
			want: "claim default/c, preference p (DeviceClass high spec.config[0]): ERROR: <input>:1:1: the expression must return int, it returns double",
		},
		"malformed in the class": {
			claim: claim("c").want("r", 2).class("high"), classes: []*resourceapi.DeviceClass{classPreferring("high", "", sum)},
			want: `ResourceClaim default/c: spec.devices.requests[0].exactly.deviceClassName: Invalid value: "high": DeviceClass high: spec.config[0].opaque.parameters.name: Required value`,
		},
		"overruled by the claim": {
			claim: claim("c").want("r", 2).class("high").prefer("p", sum), classes: []*resourceapi.DeviceClass{classPreferring("high", "p", "1.5")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{classes: test.classes, claims: []*claimBuilder{test.claim}}
			err := s.allocator(t).CheckConstraints(s.apiClaims())
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
			s.opts = []Option{WithoutPreferences()}
			require.NoError(t, s.allocator(t).CheckConstraints(s.apiClaims()))
		})
	}
}

// TestWithoutPreferences: the first set is taken, and neither a mistake nor what was found with
// preferences before plays a role.
func TestWithoutPreferences(t *testing.T) {
	cache := WithCache(NewCache())
	first := []string{"r=mla-0", "r=mla-1"}
	for _, plain := range []*claimBuilder{claim("c").want("r", 2), claim("c").want("r", 2).cel("any").define("any", "true")} {
		s := scenario{slices: eight(), claims: []*claimBuilder{plain.prefer("p", sum)}, opts: []Option{cache}}
		s.requireDevices(t, "r=mla-6", "r=mla-7")
		s.opts = []Option{cache, WithoutPreferences()}
		s.requireDevices(t, first...)
		_, details, err := s.allocator(t).AllocateWithDetails(t.Context(), s.onNode(), s.apiClaims())
		require.NoError(t, err)
		require.Empty(t, details.Outcome)
		require.Empty(t, details.Preferences)
		s.opts = []Option{cache}
		s.requireDevices(t, "r=mla-6", "r=mla-7")
	}
	s := scenario{slices: eight(), claims: []*claimBuilder{claim("c").want("r", 2).prefer("p", "devices.")}, opts: []Option{WithoutPreferences()}}
	s.requireDevices(t, first...)
}

// A budget for an attempt may be another one for preferences.
func TestAttemptBudgetLimitsPreferences(t *testing.T) {
	s := scenario{slices: eight(), claims: []*claimBuilder{claim("c").want("r", 4).prefer("p", "devices.slice(0, 4).map(d, "+indexOfD+").max()")}}
	outcome := func(steps int64) Stats {
		budget := NewAttemptBudget(1_000_000, 1_000_000)
		budget.LimitPreferences(1_000_000, steps)
		s.opts = []Option{WithAttemptBudget(budget)}
		a := s.allocator(t)
		_, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
		require.NoError(t, err)
		stats := a.Stats()
		return Stats{PreferencesBest: stats.PreferencesBest, PreferencesBestFound: stats.PreferencesBestFound}
	}
	require.Equal(t, Stats{PreferencesBest: 1}, outcome(1_000_000))
	require.Equal(t, Stats{PreferencesBestFound: 1}, outcome(0))
}

// Preferences of one class for two requests are told from each other by their places.
func TestDetailsHavePlaces(t *testing.T) {
	s := scenario{
		slices: eight(), classes: []*resourceapi.DeviceClass{classPreferring("high", "p", sum)},
		claims: []*claimBuilder{claim("c").want("r", 1).class("high").want("s", 1).class("high"), claim("d").want("t", 1), claim("e").want("u", 1).prefer("q", "-"+sum)},
	}
	_, details, err := s.allocator(t).AllocateWithDetails(t.Context(), s.onNode(), s.apiClaims())
	require.NoError(t, err)
	const ofClass = "p of DeviceClass high spec.config[0]"
	require.Equal(t, []PreferenceValue{
		{Claim: 0, Preference: 0, Name: ofClass, Value: 7},
		{Claim: 0, Preference: 1, Name: ofClass, Value: 6},
		{Claim: 2, Preference: 0, Name: "q", Value: 0},
	}, details.Preferences)
}
