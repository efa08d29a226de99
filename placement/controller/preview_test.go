// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/placement"
)

func candidatesOf(result *placement.Result) []string {
	names := []string{}
	for _, c := range result.Candidates {
		names = append(names, c.Cluster.Name)
	}
	return names
}

func TestPreview(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", map[string]string{"tier": "gold"})
	f.join(t, "b", nil)
	object := f.place(t, "p", `"tier" in managedCluster.metadata.labels`)
	f.requireSelected(t, object, "a")

	preview, err := NewPreview(f.hub, Options{})
	must(t, err)
	key := client.ObjectKeyFromObject(object)
	live, err := preview.Placement(t.Context(), key)
	must(t, err)
	f.requireCondition(t, live, clusterv1beta1.PlacementConditionSatisfied, "True AllDecisionsScheduled")
	result, err := preview.Schedule(t.Context(), live, time.Time{})
	must(t, err)
	require.Equal(t, f.names("a"), candidatesOf(result))
	require.EqualValues(t, 200, result.Candidates[0].Total, "it is in the former decision, so Steady says 100")
	for _, condition := range result.Conditions {
		require.Equal(t, live.Generation, condition.ObservedGeneration)
	}

	// An object that claims to be the live one has no effect on what is said of that.
	pretender := live.DeepCopy()
	pretender.Spec.Predicates = predicates(`false`)
	result, err = preview.Schedule(t.Context(), pretender, time.Time{})
	must(t, err)
	require.Empty(t, result.Candidates)
	result, err = preview.Schedule(t.Context(), live, time.Time{})
	must(t, err)
	require.Equal(t, f.names("a"), candidatesOf(result))

	// At another time, which changes nothing about the hub.
	timed := live.DeepCopy()
	timed.Spec.Predicates = predicates(`now() < timestamp("2026-08-01T12:00:00Z")`)
	at := time.Date(2026, 8, 1, 11, 59, 59, 0, time.UTC)
	for range 2 {
		result, err = preview.Schedule(t.Context(), timed, at)
		must(t, err)
		require.Equal(t, f.names("a", "b"), candidatesOf(result))
		require.Equal(t, at, result.Time())
		require.Equal(t, at.Add(time.Second), result.Requeue)
	}
	result, err = preview.Schedule(t.Context(), timed, at.Add(time.Second))
	must(t, err)
	require.Empty(t, result.Candidates)

	f.requireSelected(t, object, "a")
	_, err = preview.Placement(t.Context(), types.NamespacedName{Namespace: f.name, Name: "q"})
	require.True(t, apierrors.IsNotFound(err), err)
}

// unreadable fails to list, from some kind on.
type unreadable struct {
	client.Reader
	failed error
	after  *int
}

func (u unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	if *u.after--; *u.after < 0 {
		return u.failed
	}
	return nil
}

func TestPreviewOfAHubThatCannotBeRead(t *testing.T) {
	gone := errors.New("gone")
	for read, kind := range []string{"PlacementDecisions", "ManagedClusters", "AddOnPlacementScores", "ManagedClusterSets", "ManagedClusterSetBindings"} {
		preview, err := NewPreview(unreadable{failed: gone, after: &read}, Options{})
		must(t, err)
		result, err := preview.Schedule(t.Context(), &clusterv1beta1.Placement{}, time.Time{})
		require.ErrorIs(t, err, gone)
		require.ErrorContains(t, err, "list "+kind)
		require.Nil(t, result)
	}
}
