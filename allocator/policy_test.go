// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// TestPolicies demands a search, a description and a weight for each policy that a claim may name.
func TestPolicies(t *testing.T) {
	for _, name := range v1alpha1.PreferencePolicies {
		p := policyNamed(name)
		require.NotNil(t, p, name)
		require.NotNil(t, p.newObjective, name)
		require.NotEmpty(t, p.Description, name)
		require.Positive(t, p.StepWeight, name)
	}
	require.Nil(t, policyNamed(""))
}
