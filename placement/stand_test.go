// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
)

// TestStand: what can't be written is no decision, and the status says why and keeps what it says of groups.
func TestStand(t *testing.T) {
	h := newHub(several("a", "b")...)
	h.decided("ns", "p", "b")
	object := placed(t, "{}")
	result := schedule(t, object, h)
	require.NotNil(t, result.Decision)
	conditions := len(result.Conditions)
	result.Stand(object, &placement.Misconfiguration{Plugin: placement.Selection, Path: field.NewPath("metadata", "name"), Err: errors.New("it is taken")})
	require.Nil(t, result.Decision)
	require.Len(t, result.Misconfigurations, 1)
	require.Len(t, result.Conditions, conditions)

	former := clusterv1beta1.PlacementStatus{DecisionGroups: []clusterv1beta1.DecisionGroupStatus{{ClustersCount: 1}}}
	status := result.ApplyTo(former)
	require.EqualValues(t, 1, status.NumberOfSelectedClusters)
	require.Equal(t, former.DecisionGroups, status.DecisionGroups)
	misconfigured := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
	require.Equal(t, "Selection:metadata.name: it is taken", misconfigured.Message)
	require.True(t, meta.IsStatusConditionFalse(status.Conditions, clusterv1beta1.PlacementConditionSatisfied))
}

// TestMisconfigured: what was written stands, and one condition says what is wrong all the same.
func TestMisconfigured(t *testing.T) {
	h := newHub(several("a", "b")...)
	object := placed(t, "{}")
	result := schedule(t, object, h)
	conditions := len(result.Conditions)
	result.Misconfigured(object, &placement.Misconfiguration{Plugin: placement.Selection, Path: field.NewPath("metadata", "name"), Err: errors.New("it is taken")})
	require.NotNil(t, result.Decision)
	require.Len(t, result.Conditions, conditions)
	status := result.ApplyTo(clusterv1beta1.PlacementStatus{})
	require.EqualValues(t, 2, status.NumberOfSelectedClusters)
	require.Equal(t, "Selection:metadata.name: it is taken", meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionMisconfigured).Message)
	require.True(t, meta.IsStatusConditionTrue(status.Conditions, clusterv1beta1.PlacementConditionSatisfied))
}

// TestExpensive: an expression that does not compile is none.
func TestExpensive(t *testing.T) {
	scheduler, err := placement.NewScheduler(placement.Config{})
	require.NoError(t, err)
	const nested = "managedCluster.a.all(a, managedCluster.b.all(b, managedCluster.c.all(c, managedCluster.d.all(d, a == d))))"
	found := uninterrupted(scheduler.Expensive(t.Context(), placed(t, withExpressions("true")+"\n")))
	require.Empty(t, found)
	object := placed(t, withExpressions("true", nested))
	object.Spec.Predicates = append(placed(t, withExpressions("1 +")).Spec.Predicates, object.Spec.Predicates...)
	found = uninterrupted(scheduler.Expensive(t.Context(), object))
	require.Len(t, found, 1)
	require.Equal(t, "spec.predicates[1].requiredClusterSelector.celSelector.celExpressions[1]", found[0].Path.String())
}
