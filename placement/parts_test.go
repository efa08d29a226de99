// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// TestPartsAreBounded: an object may have hundreds of thousands of empty parts.
func TestPartsAreBounded(t *testing.T) {
	scheduler, err := NewScheduler(Config{})
	require.NoError(t, err)
	values := func(n int) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: make([]string, n)}}}
	}
	strategy := func(groups ...clusterv1beta1.DecisionGroup) clusterv1beta1.DecisionStrategy {
		return clusterv1beta1.DecisionStrategy{GroupStrategy: clusterv1beta1.GroupStrategy{DecisionGroups: groups}}
	}
	for message, spec := range map[string]clusterv1beta1.PlacementSpec{
		"": {Predicates: make([]clusterv1beta1.ClusterPredicate, MaxParts)},
		"there are 129 predicates, at most 128 are looked at":      {Predicates: make([]clusterv1beta1.ClusterPredicate, MaxParts+1)},
		"there are 129 prioritizers, at most 128 are looked at":    {PrioritizerPolicy: clusterv1beta1.PrioritizerPolicy{Configurations: make([]clusterv1beta1.PrioritizerConfig, MaxParts+1)}},
		"there are 129 decision groups, at most 128 are looked at": {DecisionStrategy: strategy(make([]clusterv1beta1.DecisionGroup, MaxParts+1)...)},
		"there are 4097 labels, requirements, values, tolerations and sets together, at most 4096 are looked at": {
			Predicates:       []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{LabelSelector: values(2000)}}},
			DecisionStrategy: strategy(clusterv1beta1.DecisionGroup{GroupName: "g", ClusterSelector: clusterv1beta1.GroupClusterSelector{LabelSelector: values(2085)}}),
			Tolerations:      make([]clusterv1beta1.Toleration, 10),
		},
	} {
		wrong, err := scheduler.Validate(t.Context(), &clusterv1beta1.Placement{Spec: spec})
		require.NoError(t, err)
		if message == "" {
			require.Empty(t, wrong)
			continue
		}
		require.Len(t, wrong, 1)
		require.ErrorContains(t, wrong[0], message)
	}
}
