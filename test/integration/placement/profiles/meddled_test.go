// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
)

// meddling returns the changes that another writer makes to a PlacementDecision of either kind. The key names the change.
func meddling(object client.Object, key, another string, empty, add func()) map[string]func() {
	labels := object.GetLabels()
	return map[string]func(){
		"no label":   func() { delete(labels, key) },
		"no labels":  func() { object.SetLabels(nil) },
		"of another": func() { labels[key] = another },
		"empty":      empty,
		"stranger":   add,
	}
}

// TestStoryMeddledDecisions changes PlacementDecisions as another writer. The controller must restore them after each change.
func TestStoryMeddledDecisions(t *testing.T) {
	run(t)
	of := newTeam(t, "meddlers")
	of.join(t, "one", profilev1alpha1.ClusterProfileStatus{})
	of.join(t, "two", profilev1alpha1.ClusterProfileStatus{})
	names := []string{"p0", "p1", "p2", "p3"}
	for _, name := range names {
		of.place(t, name)
	}
	for _, name := range names {
		of.requireSelected(t, name, "one", "two")
	}
	random, met := rand.New(rand.NewPCG(cases.Seed(), 1)), map[string]int{}
	meddle := func(kind string, object client.Object, status bool, ways map[string]func()) {
		before := object.DeepCopyObject().(client.Object)
		names := append(slices.Sorted(maps.Keys(ways)), "delete")
		way := names[random.IntN(len(names))]
		var err error
		switch {
		case way == "delete":
			err = shared.Delete(t.Context(), object)
		case status && (way == "empty" || way == "stranger"):
			ways[way]()
			err = shared.Status().Patch(t.Context(), object, client.MergeFrom(before))
		default:
			ways[way]()
			err = shared.Patch(t.Context(), object, client.MergeFrom(before))
		}
		if require.NoError(t, client.IgnoreNotFound(err)); err == nil {
			met[kind+": "+way]++
		}
	}
	for round := 0; round < cases.Of(10, 40) || len(met) < 12; round++ {
		for i, name := range names {
			another := names[(i+1)%len(names)]
			for _, object := range of.published(t, name) {
				if random.IntN(2) == 0 {
					meddle("SIG Multicluster", &object, false, meddling(&object, profilev1alpha1.DecisionKeyLabel, another,
						func() { object.Decisions = []profilev1alpha1.ClusterDecision{} },
						func() {
							object.Decisions = append(object.Decisions, profilev1alpha1.ClusterDecision{
								ClusterProfileRef: profilev1alpha1.ClusterProfileReference{Namespace: fleet, Name: "stranger"},
							})
						}))
				}
			}
			var list clusterv1beta1.PlacementDecisionList
			require.NoError(t, shared.List(t.Context(), &list, client.InNamespace(of), client.MatchingLabels{clusterv1beta1.PlacementLabel: name}))
			for _, object := range list.Items {
				if random.IntN(2) == 0 {
					meddle("Open Cluster Management", &object, true, meddling(&object, clusterv1beta1.PlacementLabel, another,
						func() { object.Status.Decisions = []clusterv1beta1.ClusterDecision{} },
						func() {
							object.Status.Decisions = append(object.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: "stranger"})
						}))
				}
			}
		}
		if random.IntN(2) == 0 {
			for _, name := range names {
				of.requireSelected(t, name, "one", "two")
			}
		}
	}
	t.Log(met)
}
