// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/cel/cluster"
)

// The examples of the proposal "Select clusters with CEL expressions", as they
// stand there. The fifth is in TestClusterProfile.

func TestSelectByVersionField(t *testing.T) {
	const expression = `managedCluster.status.version.kubernetes == "v1.30.0"`
	object := cluster1()
	requireMatch(t, true, expression, cluster.New(object), cluster.Hub{})
	object.Status.Version.Kubernetes = "v1.30.1"
	requireMatch(t, false, expression, cluster.New(object), cluster.Hub{})
}

func TestSelectByLabelWithRegex(t *testing.T) {
	const expression = `managedCluster.metadata.labels["version"].matches('^1\\.(30|31)\\.\\d+$')`
	for version, want := range map[string]bool{"1.30.0": true, "1.31.12": true, "1.32.0": false, "v1.30.0": false, "1.30": false} {
		object := cluster1()
		object.Labels["version"] = version
		requireMatch(t, want, expression, cluster.New(object), cluster.Hub{})
	}
}

func TestSelectByClaimWithRegex(t *testing.T) {
	const expression = `managedCluster.status.clusterClaims.exists(c, c.name == "kubeversion.open-cluster-management.io" && c.value.matches('^1\\.(30|31)\\.\\d+$'))`
	for version, want := range map[string]bool{"1.30.4": true, "1.29.0": false, "v1.30.0": false} {
		object := cluster1()
		object.Status.ClusterClaims[1].Value = version
		requireMatch(t, want, expression, cluster.New(object), cluster.Hub{})
	}
}

func TestSelectByVersionComparison(t *testing.T) {
	const expression = `semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("v1.30.0", true))`
	for version, want := range map[string]bool{"v1.30.0": false, "v1.30.1": true, "1.31.0": true, "v1.9.7": false, "v1.31": true} {
		object := cluster1()
		object.Status.Version.Kubernetes = version
		requireMatch(t, want, expression, cluster.New(object), cluster.Hub{})
	}
}

func TestSelectByScores(t *testing.T) {
	selector := compile(t, expressions(
		`managedCluster.scores("default").filter(s, s.name == 'cpuAvailable').all(e, e.quantity > 4)`,
		`managedCluster.scores("default").filter(s, s.name == 'memAvailable').all(e, quantity(e.quantity).isGreaterThan(quantity("100Mi")))`,
	))
	for quantities, want := range map[string]bool{
		`{"cpuAvailable": "5", "memAvailable": "300Mi"}`:   true,
		`{"cpuAvailable": "5", "memAvailable": "1.5Gi"}`:   true,
		`{"cpuAvailable": "4", "memAvailable": "300Mi"}`:   false,
		`{"cpuAvailable": "5", "memAvailable": "100Mi"}`:   false,
		`{"cpuAvailable": "-5", "memAvailable": "300Mi"}`:  false,
		`{"cpuAvailable": "+12", "memAvailable": "0.2Gi"}`: true,
	} {
		scores := score("default", clusterv1alpha1.AddOnPlacementScoreItem{Name: "cpuAvailable", Value: 3},
			clusterv1alpha1.AddOnPlacementScoreItem{Name: "memAvailable", Value: 4})
		scores.Annotations = map[string]string{cluster.QuantitiesAnnotation: quantities}
		verdict, err := selector.Match(t.Context(), cluster.New(cluster1()), hub(scores))
		require.NoError(t, err)
		require.Equal(t, want, verdict.Matches, quantities)
	}
}

// User story 4: clusters whose cpuAvailable is less than 2, by the value.
func TestSelectByScoreValue(t *testing.T) {
	for value, want := range map[int32]bool{1: true, 2: false, -100: true} {
		scores := score("default", clusterv1alpha1.AddOnPlacementScoreItem{Name: "cpuAvailable", Value: value})
		requireMatch(t, want, `managedCluster.scores("default").exists(s, s.name == "cpuAvailable" && s.value < 2)`,
			cluster.New(cluster1()), hub(scores))
		requireMatch(t, want, `managedCluster.scores("default").exists(s, s.name == "cpuAvailable" && s.quantity < 2)`,
			cluster.New(cluster1()), hub(scores))
	}
}

// What the JSON of an object does not have, expressions don't see.
func TestAbsentFields(t *testing.T) {
	empty := cluster.New(&clusterv1.ManagedCluster{})
	for expression, key := range map[string]string{
		`managedCluster.metadata.labels["a"] == "b"`:      "labels",
		`managedCluster.status.clusterClaims.size() == 0`: "clusterClaims",
		`managedCluster.status.allocatable.size() == 0`:   "allocatable",
		`managedCluster.spec.taints.size() == 0`:          "taints",
		`managedCluster.kind == "ManagedCluster"`:         "kind",
		`managedCluster.metadata.name == ""`:              "name",
	} {
		_, err := matches(t, expression, empty, cluster.Hub{})
		require.ErrorContains(t, err, "no such key: "+key, expression)
	}
	for _, expression := range []string{
		`managedCluster.status.conditions == null`,
		`managedCluster.status.version == {}`,
		`managedCluster.spec.hubAcceptsClient == false`,
		`!has(managedCluster.metadata.labels) && !has(managedCluster.kind) && has(managedCluster.spec)`,
		`managedCluster.metadata.?labels["a"].orValue("none") == "none"`,
	} {
		requireMatch(t, true, expression, empty, cluster.Hub{})
	}
	object := cluster1()
	object.Kind = "ManagedCluster"
	requireMatch(t, true, `managedCluster.kind == "ManagedCluster"`, cluster.New(object), cluster.Hub{})
}
