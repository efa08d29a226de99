// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
)

// One operation is one cluster.
func BenchmarkMatch(b *testing.B) {
	for _, benchmark := range []struct {
		name     string
		selector clusterv1beta1.ClusterSelector
	}{
		{"labels", clusterv1beta1.ClusterSelector{LabelSelector: metav1.LabelSelector{
			MatchLabels:      map[string]string{"environment": "prod"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "cloud", Operator: "In", Values: []string{"Amazon", "Azure"}}},
		}}},
		{"claims", clusterv1beta1.ClusterSelector{ClaimSelector: clusterv1beta1.ClusterClaimSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kubeversion.open-cluster-management.io", Operator: "In", Values: []string{"1.30.1"}}},
		}}},
		{"version", expressions(`managedCluster.status.version.kubernetes == "v1.30.0"`)},
		{"label-regex", expressions(`managedCluster.metadata.labels["version"].matches('^1\\.(30|31)\\.\\d+$')`)},
		{"claims-regex", expressions(`managedCluster.status.clusterClaims.exists(c, c.name == "kubeversion.open-cluster-management.io" && c.value.matches('^1\\.(30|31)\\.\\d+$'))`)},
		{"every-claim-regex", expressions(`managedCluster.status.clusterClaims.exists(c, c.value.matches('^1\\.(30|31)\\.\\d+$'))`)},
		{"semver", expressions(`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("v1.29.9", true))`)},
		{"age", expressions(`managedCluster.status.version.kubernetes != "v1.30.0" && now() - timestamp(managedCluster.metadata.creationTimestamp) > duration("24h")`)},
		{"weekday", expressions(`managedCluster.status.version.kubernetes == "v1.30.0" && now().getDayOfWeek("Europe/Berlin") in [0, 1, 2, 3, 4, 5, 6]`)},
	} {
		for _, n := range []int{1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", benchmark.name, n), func(b *testing.B) {
				selector, clusters, i, matched := compile(b, benchmark.selector), fleetOf(n), 0, 0
				b.ReportAllocs()
				for b.Loop() {
					verdict, err := selector.Match(b.Context(), clusters[i], cluster.Hub{})
					if err != nil {
						b.Fatal(err)
					}
					if verdict.Matches {
						matched++
					}
					i = (i + 1) % n
				}
				if b.N > n && (matched == 0 || matched == b.N) {
					b.Fatal("the selector tells no clusters apart")
				}
			})
		}
	}
}
