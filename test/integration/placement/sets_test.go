// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/allocator/fragmentation"
	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/cmd/celset-scheduler/setpublisher"
	"github.com/celset/celset/plugin/metrics"
)

// TestClustersWithSets creates two clusters with the same number of devices. Each publishes how many sets are free, and a
// Placement must select the cluster that has one. When a cluster stops publishing, the Placement must soon not select it any
// more.
func TestClustersWithSets(t *testing.T) {
	s := newFleet(t, "")
	// With this clock, the published numbers don't expire during the test.
	clock := clocktesting.NewFakePassiveClock(time.Now().Add(time.Hour))
	counted, written := map[string]*metrics.Fragmentation{}, 0
	publishers := map[string]*setpublisher.Publisher{}
	count := func(name string, now int) {
		counted[name] = &metrics.Fragmentation{At: clock.Now(), Report: &fragmentation.Report{Shapes: []fragmentation.Shape{
			{Class: "gpu.example.com", Constraint: "block8", Devices: 8, Now: fragmentation.Count{Sets: now}, Idle: fragmentation.Count{Sets: 4}},
			{Class: "gpu.example.com", Constraint: "broken", Devices: 8, Error: "it does not compile"},
		}}}
	}
	names := map[string]string{}
	for _, name := range []string{"east", "west"} {
		cluster := s.join(t, name, traits{allocate: clusterv1.ResourceList{"gpu.example.com": resource.MustParse("16")}})
		names[name] = cluster.Name
		s.open(t, cluster.Name)
		publishers[name] = &setpublisher.Publisher{
			Kubeconfig: s.Kubeconfig(), Cluster: cluster.Name, Interval: time.Minute, Clock: clock,
			Counted: func() *metrics.Fragmentation { return counted[name] },
			Observe: func(metrics.Publication) { written++ },
		}
		require.NoError(t, publishers[name].Publish(t.Context()), "nothing is known yet")
	}
	require.Zero(t, written)
	count("east", 0)
	count("west", 2)
	publish := func(want int) {
		t.Helper()
		before := written
		for _, p := range publishers {
			require.NoError(t, p.Publish(t.Context()))
		}
		require.Equal(t, want, written-before, "writes")
	}
	publish(2)
	scoreOf := func(name string) *clusterv1alpha1.AddOnPlacementScore {
		t.Helper()
		score := &clusterv1alpha1.AddOnPlacementScore{}
		require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: names[name], Name: setscores.Name}, score))
		return score
	}
	require.Equal(t, []clusterv1alpha1.AddOnPlacementScoreItem{
		{Name: "gpu.example.com/block8/8/idle", Value: 4}, {Name: "gpu.example.com/block8/8/now", Value: -100}, {Name: "gpu.example.com/block8/8/packed", Value: -100},
	}, scoreOf("east").Status.Scores)

	s.place(t, "sets", `
predicates:
- requiredClusterSelector:
    celSelector:
      celExpressions:
      - managedCluster.sets("gpu.example.com", "block8", 8).now >= 2
`)
	s.requireSelected(t, "sets", "west")
	publish(0)
	before := scoreOf("west").ResourceVersion

	// The counts have not changed, so the publisher writes again only when half of the validity has passed.
	clock.SetTime(clock.Now().Add(time.Minute))
	count("east", 0)
	count("west", 2)
	publish(0)
	require.Equal(t, before, scoreOf("west").ResourceVersion)
	clock.SetTime(clock.Now().Add(time.Minute))
	count("east", 0)
	count("west", 2)
	publish(2)
	require.WithinDuration(t, clock.Now().Add(3*time.Minute), scoreOf("west").Status.ValidUntil.Time, time.Second)

	// From now on, the other cluster has free sets.
	count("east", 3)
	count("west", 1)
	publish(2)
	s.requireSelected(t, "sets", "east")

	// East has stopped counting, so it does not extend the validity of its numbers. After they expire, it must not be selected.
	// Another cluster must have sets, because otherwise the previous decision would stay.
	counted["east"].At = time.Now().Add(-time.Hour)
	counted["east"].Report.Shapes[0].Now.Sets = 4
	count("west", 2)
	publish(2)
	s.requireSelected(t, "sets", "west")
}
