// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// TestPolicies checks that each policy that a claim may name has a search, a description and a weight.
func TestPolicies(t *testing.T) {
	for _, name := range v1alpha1.PreferencePolicies {
		p := v1alpha1.PolicyNamed(name)
		require.NotEmpty(t, p.Description, name)
		require.Positive(t, p.StepWeight, name)
		got, stats := given(t, "devices 4 mla-#; claim c; want r 2").answer(t, WithDefaultPreference(name))
		require.Len(t, devicesOf(got.Results), 2, name)
		require.EqualValues(t, 1, stats.PreferencesBest+stats.PreferencesBestFound, name)
	}
	require.Nil(t, v1alpha1.PolicyNamed(""))

	_, err := (&Problem{Options: []Option{WithDefaultPreference("Spread")}}).NewAllocator(t.Context())
	require.EqualError(t, err, `default preference: policy "Spread" is unknown: use one of [KeepWhole]`)
}
