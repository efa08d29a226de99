// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/placement"
)

// listing is all there is on a hub, as one list each.
type listing struct {
	placements []*clusterv1beta1.Placement
	decisions  []*clusterv1beta1.PlacementDecision
	snapshot   placement.Snapshot
}

type scores map[string]*clusterv1alpha1.AddOnPlacementScore

// FindScore looks in the map.
func (s scores) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	return s[namespace+"/"+name], nil
}

func (h *hub) list(t testing.TB) listing {
	t.Helper()
	var (
		placements clusterv1beta1.PlacementList
		decisions  clusterv1beta1.PlacementDecisionList
		clusters   clusterv1.ManagedClusterList
		sets       clusterv1beta2.ManagedClusterSetList
		bindings   clusterv1beta2.ManagedClusterSetBindingList
		found      clusterv1alpha1.AddOnPlacementScoreList
	)
	for _, list := range []client.ObjectList{&decisions, &placements, &clusters, &sets, &bindings, &found} {
		require.NoError(t, h.List(t.Context(), list))
	}
	byName := scores{}
	for i := range found.Items {
		byName[found.Items[i].Namespace+"/"+found.Items[i].Name] = &found.Items[i]
	}
	result := listing{placements: pointers(placements.Items), decisions: pointers(decisions.Items)}
	result.snapshot = placement.Snapshot{
		Clusters: pointers(clusters.Items), ClusterSets: pointers(sets.Items), Bindings: pointers(bindings.Items), Scores: byName,
	}
	return result
}

func pointers[T any](items []T) []*T {
	result := make([]*T, len(items))
	for i := range items {
		result[i] = &items[i]
	}
	return result
}

// difference says where the PlacementDecisions and the status of Placements are not
// what a Scheduler that remembers nothing decides; "" if they are. With oblivious, it
// does not know either what was decided before, and so not which slice of its group a
// cluster is in: then only the groups are compared.
func (l listing) difference(t testing.TB, oblivious bool) string {
	t.Helper()
	scheduler, err := placement.NewScheduler(placement.Config{})
	require.NoError(t, err)
	snapshot := l.snapshot
	snapshot.Decisions = placement.NewDecisions(l.decisions...)
	if oblivious {
		snapshot.Decisions = nil
	}
	var out strings.Builder
	for _, object := range l.placements {
		result, err := scheduler.Schedule(t.Context(), object, &snapshot, time.Now())
		require.NoError(t, err)
		// What it remembers would keep the clusters that were listed for this.
		scheduler.Forget(object.UID)
		has := slices.DeleteFunc(slices.Clone(l.decisions), func(d *clusterv1beta1.PlacementDecision) bool {
			return d.Labels[clusterv1beta1.PlacementLabel] != object.Name
		})
		if oblivious {
			require.NotNil(t, result.Decision, object.Name)
			if wanted := groupsOf(result.Decision.Objects(object)); !cmp.Equal(wanted, groupsOf(has)) {
				fmt.Fprintf(&out, "%s: groups (-want +got):\n%s", object.Name, cmp.Diff(wanted, groupsOf(has)))
			}
			continue
		}
		if result.Decision != nil {
			for _, step := range placement.Updates(has, result.Decision.Objects(object)) {
				fmt.Fprintf(&out, "%s: %s is to be changed (delete: %t)\n", object.Name, step.Object.Name, step.Delete)
			}
		}
		if wanted := result.ApplyTo(object.Status); !equality.Semantic.DeepEqual(wanted, object.Status) {
			fmt.Fprintf(&out, "%s: status (-want +got):\n%s", object.Name, cmp.Diff(wanted, object.Status))
		}
	}
	return out.String()
}

// groupsOf are the clusters of each decision group, sorted, by its index and name.
func groupsOf(objects []*clusterv1beta1.PlacementDecision) map[string][]string {
	result := map[string][]string{}
	for _, object := range objects {
		group := object.Labels[clusterv1beta1.DecisionGroupIndexLabel] + " " + object.Labels[clusterv1beta1.DecisionGroupNameLabel]
		result[group] = append(result[group], clustersOf(object)...)
	}
	for group := range result {
		slices.Sort(result[group])
	}
	return result
}

// requireSettled waits until everything is as it is decided from scratch.
func (h *hub) requireSettled(t testing.TB) listing {
	t.Helper()
	for deadline := time.Now().Add(env.Patience); ; time.Sleep(200 * time.Millisecond) {
		listed := h.list(t)
		difference := listed.difference(t, false)
		if difference == "" {
			return listed
		}
		if time.Now().After(deadline) {
			t.Fatal(difference[:min(len(difference), 10_000)])
		}
	}
}
