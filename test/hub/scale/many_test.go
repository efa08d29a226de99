// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// kindsOfPlacements are kinds of specs. The argument of spec selects the version, region or number that the Placement requires.
var kindsOfPlacements = []struct {
	name string
	// evaluated is set if the spec has a CEL expression, so that a change of a cluster needs an evaluation.
	evaluated bool
	spec      func(i int) clusterv1beta1.PlacementSpec
}{
	{"label", false, func(i int) clusterv1beta1.PlacementSpec {
		return required(clusterv1beta1.ClusterSelector{LabelSelector: metav1.LabelSelector{
			MatchLabels: map[string]string{"region": fmt.Sprintf("eu-central-%d", i%4), "environment": "prod"},
		}})
	}},
	{"claim", false, func(i int) clusterv1beta1.PlacementSpec {
		return required(clusterv1beta1.ClusterSelector{ClaimSelector: clusterv1beta1.ClusterClaimSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "kubeversion.open-cluster-management.io", Operator: metav1.LabelSelectorOpIn, Values: []string{fmt.Sprintf("1.30.%d", i%9), fmt.Sprintf("1.31.%d", i%9)}},
			},
		}})
	}},
	{"cel", true, func(i int) clusterv1beta1.PlacementSpec {
		return required(expression([]string{
			`managedCluster.status.version.kubernetes == "v1.%d.0" && managedCluster.metadata.labels["region"] != "eu-central-3"`,
			`managedCluster.metadata.labels["version"].matches('^1\\.%d\\.\\d+$') && managedCluster.metadata.labels["region"] == "eu-central-0"`,
			`managedCluster.status.clusterClaims.exists(c, c.value.matches('^1\\.%d\\.[0-4]$')) && managedCluster.metadata.labels["region"] != "eu-central-1"`,
			`managedCluster.scores("room").exists(s, s.name == "free" && s.value > %d)`,
		}[i%4], 29+i%3))
	}},
	{"score", false, func(i int) clusterv1beta1.PlacementSpec {
		return clusterv1beta1.PlacementSpec{
			NumberOfClusters:  ptr.To(int32(10 + i)),
			PrioritizerPolicy: exactly(room(2), builtIn(placement.ResourceAllocatableCPU, 1)),
		}
	}},
	{"spread", false, func(i int) clusterv1beta1.PlacementSpec {
		return clusterv1beta1.PlacementSpec{
			NumberOfClusters:  ptr.To(int32(40 + i)),
			PrioritizerPolicy: exactly(builtIn(placement.Steady, 1), room(1)),
			SpreadPolicy: clusterv1beta1.SpreadPolicy{SpreadConstraints: []clusterv1beta1.SpreadConstraintsTerm{
				{TopologyKey: "region", TopologyKeyType: clusterv1beta1.TopologyKeyTypeLabel, MaxSkew: 1, WhenUnsatisfiable: clusterv1beta1.DoNotSchedule},
			}},
		}
	}},
}

func required(selector clusterv1beta1.ClusterSelector) clusterv1beta1.PlacementSpec {
	return clusterv1beta1.PlacementSpec{
		Predicates: []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: selector}},
		// Turn the prioritizer Balance off, which is on by default. Its scores depend on the decisions of other Placements.
		PrioritizerPolicy: exactly(),
	}
}

func expression(format string, arguments ...any) clusterv1beta1.ClusterSelector {
	return clusterv1beta1.ClusterSelector{CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{fmt.Sprintf(format, arguments...)}}}
}

// many is a hub with many clusters, a score for each of them, and decided Placements of all kinds.
type many struct {
	*hub
	clusters int
	// placements is the number of all Placements. evaluated is the number of Placements with a CEL expression.
	placements, evaluated int
	meter                 *meter
	observer              *observer
}

func newMany(t testing.TB) *many {
	t.Helper()
	m := &many{hub: newHub(t, controlplane.Options{}), clusters: 5000, placements: 100}
	m.join(t, 0, m.clusters)
	m.score(t, m.clusters)
	for i := range m.placements {
		kind := kindsOfPlacements[i%len(kindsOfPlacements)]
		m.place(t, fmt.Sprintf("%s-%d", kind.name, i/len(kindsOfPlacements)), kind.spec(i/len(kindsOfPlacements)))
		if kind.evaluated {
			m.evaluated++
		}
	}
	m.observer = m.observe(t)
	started := time.Now()
	m.meter, _ = m.control(t)
	_, last := m.observer.quiet(t, 0, 3*time.Second)
	t.Logf("%d clusters, %d Placements: decided for the first time in %s", m.clusters, m.placements, last.Sub(started).Round(time.Millisecond))
	return m
}

// decided waits until every Placement has been decided after the decision number since, and no further decisions are made.
func (m *many) decided(t testing.TB, since int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		return m.meter.decisions.Load() >= since+int64(m.placements)
	}, env.Patience, time.Millisecond)
	for now := int64(-1); now != m.meter.decisions.Load(); time.Sleep(500 * time.Millisecond) {
		now = m.meter.decisions.Load()
	}
}

// update changes the i-th cluster, and waits until the Placements are decided.
func (m *many) update(t testing.TB, i int, mutate func(*clusterv1.ManagedCluster)) {
	t.Helper()
	since, object := m.meter.decisions.Load(), &clusterv1.ManagedCluster{}
	require.NoError(t, m.Get(t.Context(), client.ObjectKey{Name: nameOf(i)}, object))
	require.NoError(t, env.Change(t.Context(), m.hub, object, mutate))
	m.decided(t, since)
}

// TestOneOfManyClustersChanges checks the numbers of evaluations and writes after a change of one cluster.
func TestOneOfManyClustersChanges(t *testing.T) {
	cases.OnlyNightly(t, "counts what came until nothing came for a while")
	m := newMany(t)
	m.requireSettled(t)
	before := m.observer.versions()
	m.meter.reset()

	m.update(t, 8, func(c *clusterv1.ManagedCluster) { c.Annotations = map[string]string{"note": "nobody reads it"} })
	writes, evaluations := m.meter.reset()
	require.Equal(t, m.evaluated, evaluations, "one cluster for each Placement with an expression")
	require.Empty(t, writes)

	// Cluster 8 is in region 0 and has version 1.31. The new label moves it from one Placement to another, and some Placements
	// with CEL no longer select it.
	m.update(t, 8, func(c *clusterv1.ManagedCluster) { c.Labels["region"] = "eu-central-1" })
	writes, evaluations = m.meter.reset()
	require.Equal(t, m.evaluated, evaluations)
	m.observer.catchUp(t)
	changed := 0
	for name, version := range m.observer.versions() {
		if before[name] != version {
			changed++
		}
	}
	require.NotZero(t, changed)
	require.Equal(t, changed, writes["PATCH placementdecisions/status"], "each changed object is written once: %v", writes)
	t.Logf("the change of one label: %d PlacementDecisions of %d differ; writes: %v", changed, len(before), writes)
	m.requireSettled(t)
}
