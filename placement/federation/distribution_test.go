// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package federation_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement/federation"
)

func TestDistribute(t *testing.T) {
	clusters := []federation.Cluster{
		{Name: "paris", Labels: map[string]string{"location": "europe"}},
		{Name: "boston", Labels: map[string]string{"location": "usa"}, Present: true},
		{Name: "athens", Labels: map[string]string{"location": "europe"}, Present: true},
		{Name: "austin", Labels: map[string]string{"location": "usa"}, Present: true},
		{Name: "miami", Labels: map[string]string{"location": "usa"}},
		{Name: "lab", Present: true},
	}
	const annotation = federation.ClusterSelectorAnnotation
	for name, test := range map[string]struct {
		annotations map[string]string
		clusters    []federation.Cluster
		want        federation.Distribution
		fails       bool
	}{
		"no annotation": {clusters: clusters, want: federation.Distribution{Selected: []string{"athens", "austin", "boston", "lab", "miami", "paris"}}},
		"no clusters":   {annotations: map[string]string{annotation: "[]"}},
		"europe": {
			annotations: map[string]string{annotation: `[{"key": "location", "operator": "in", "values": ["europe"]}]`},
			clusters:    clusters,
			want:        federation.Distribution{Selected: []string{"athens", "paris"}, Deleted: []string{"austin", "boston", "lab"}},
		},
		"not europe": {
			annotations: map[string]string{annotation: `[{"key": "location", "operator": "!=", "values": ["europe"]}]`},
			clusters:    clusters,
			want:        federation.Distribution{Selected: []string{"austin", "boston", "lab", "miami"}, Deleted: []string{"athens"}},
		},
		"nowhere": {
			annotations: map[string]string{annotation: `[{"key": "rack", "operator": "exists"}]`},
			clusters:    clusters,
			want:        federation.Distribution{Deleted: []string{"athens", "austin", "boston", "lab"}},
		},
		"an error": {annotations: map[string]string{annotation: `[{"not able to parse",}]`}, clusters: clusters, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(test.clusters)
			got, err := federation.Distribute(test.annotations, test.clusters)
			require.Equal(t, test.fails, err != nil)
			require.Empty(t, cmp.Diff(test.want, got))
			require.Empty(t, cmp.Diff(before, test.clusters), "the list is not reordered")
		})
	}
}

// Each cluster is selected, deleted or left alone, by its own labels, whatever
// the order.
func TestDistributeTreatsClustersAlone(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		var clusters []federation.Cluster
		for i := range rapid.IntRange(0, 5).Draw(t, "n") {
			clusters = append(clusters, federation.Cluster{
				Name: string(rune('a' + i)), Labels: labelSets.Draw(t, "labels"), Present: rapid.Bool().Draw(t, "present")})
		}
		annotations := map[string]string{federation.ClusterSelectorAnnotation: `[{"key": "a", "operator": "in", "values": ["1", "x"]}]`}
		selector, err := federation.ParseAnnotations(annotations)
		require.NoError(t, err)
		got, err := federation.Distribute(annotations, rapid.Permutation(clusters).Draw(t, "order"))
		require.NoError(t, err)
		var want federation.Distribution
		for _, cluster := range clusters {
			switch selected := selector.Matches(labels.Set(cluster.Labels)); {
			case selected:
				want.Selected = append(want.Selected, cluster.Name)
			case cluster.Present:
				want.Deleted = append(want.Deleted, cluster.Name)
			}
		}
		require.Empty(t, cmp.Diff(want, got))
	})
}
