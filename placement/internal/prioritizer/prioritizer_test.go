// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package prioritizer

import (
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement/internal/finding"
)

// TestDescriptions checks that the description of each prioritizer starts with the name that results use for the prioritizer.
func TestDescriptions(t *testing.T) {
	policy := &clusterv1beta1.PrioritizerPolicy{Mode: clusterv1beta1.PrioritizerPolicyModeExact}
	add := func(from clusterv1beta1.ScoreCoordinate) {
		policy.Configurations = append(policy.Configurations, clusterv1beta1.PrioritizerConfig{ScoreCoordinate: &from, Weight: 1})
	}
	for name := range builtIn {
		add(clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: name})
	}
	add(clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeAddOn, AddOn: &clusterv1beta1.AddOnScore{ResourceName: "r", ScoreName: "s"}})
	var wrong finding.Misconfigurations
	prioritizers := FromPolicy(policy, &wrong)
	require.Empty(t, wrong)
	require.Len(t, prioritizers, len(builtIn)+1)
	for _, p := range prioritizers {
		require.Regexp(t, "^"+p.Name+" prefers clusters .*[.]$", p.Describe())
	}
}
