// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement/federation"
)

// The examples of the proposal "ClusterSelector Federated Resource Placement". The
// annotations and the labels of the clusters are as the API server has them.

// federated has clusters with labels.
func federated(t *testing.T) scene {
	t.Helper()
	s := newScene(t, "")
	for name, labels := range map[string]map[string]string{
		"eu-prod": {"location": "europe", "environment": "prod"},
		"eu-test": {"location": "europe", "environment": "qa"},
		"us-dev":  {"location": "usa", "environment": "dev"},
		"us-prod": {"location": "usa", "environment": "prod"},
		"bare":    nil,
		"test15":  {"someLabel": "", "environment": "qa"},
	} {
		s.join(t, name, traits{labels: labels})
	}
	return s
}

// requireDistributed applies an example where "test15" and "us-dev" have the object
// already.
func requireDistributed(t *testing.T, file string, selected, deleted []string) {
	t.Helper()
	s := federated(t)
	applied := s.apply(t, file)
	require.Len(t, applied, 1)
	var list clusterv1.ManagedClusterList
	require.NoError(t, s.List(t.Context(), &list))
	selector, err := federation.ParseAnnotations(applied[0].GetAnnotations())
	require.NoError(t, err)
	var clusters []federation.Cluster
	var matching []string
	for i := range list.Items {
		c := &list.Items[i]
		clusters = append(clusters, federation.Cluster{Name: c.Name, Labels: c.Labels, Present: c.Name == "test15" || c.Name == "us-dev"})
		verdict, err := selector.Clusters().Match(t.Context(), cluster.New(c), cluster.Hub{})
		require.NoError(t, err)
		if verdict.Matches {
			matching = append(matching, c.Name)
		}
	}
	got, err := federation.Distribute(applied[0].GetAnnotations(), clusters)
	require.NoError(t, err)
	require.Equal(t, federation.Distribution{Selected: selected, Deleted: deleted}, got)
	require.Equal(t, selected, matching, "the selector that all selections use")
}

func exampleConfigMap(t *testing.T, file string) {
	requireDistributed(t, file, []string{"eu-prod"}, []string{"test15", "us-dev"})
}

func exampleEurope(t *testing.T, file string) {
	requireDistributed(t, file, []string{"eu-prod", "eu-test"}, []string{"test15", "us-dev"})
}

func exampleOneCluster(t *testing.T, file string) {
	requireDistributed(t, file, []string{"test15"}, []string{"us-dev"})
}

func exampleProduction(t *testing.T, file string) {
	requireDistributed(t, file, []string{"bare", "eu-prod", "us-prod"}, []string{"test15", "us-dev"})
}
