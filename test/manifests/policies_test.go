// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// TestAdmissionPolicyKnowsPreferences checks that the ValidatingAdmissionPolicy accepts each built-in preference.
func TestAdmissionPolicyKnowsPreferences(t *testing.T) {
	content, err := os.ReadFile("../../manifests/webhook/policy.yaml")
	require.NoError(t, err)
	for _, name := range v1alpha1.PreferencePolicies {
		require.Contains(t, string(content), "'"+string(name)+"'", "add the policy to the conditions on p.policy")
	}
}
