// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/internal/testing/fleet"
)

// environment is shared by all tests, because creating an environment takes many milliseconds.
var environment = func() *cluster.Environment {
	result, err := cluster.NewEnvironment(cel.Config{})
	if err != nil {
		panic(err)
	}
	return result
}()

// expressions returns a selector that consists of CEL expressions only.
func expressions(texts ...string) clusterv1beta1.ClusterSelector {
	return clusterv1beta1.ClusterSelector{CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: texts}}
}

func compile(t testing.TB, selector clusterv1beta1.ClusterSelector) *cluster.Selector {
	t.Helper()
	result, err := environment.Compile(t.Context(), selector, nil)
	require.NoError(t, err)
	return result
}

// matches reports whether a cluster satisfies a single expression.
func matches(t testing.TB, expression string, of cluster.Cluster, hub cluster.Hub) (bool, error) {
	t.Helper()
	verdict, err := compile(t, expressions(expression)).Match(context.Background(), of, hub)
	return verdict.Matches, err
}

func requireMatch(t testing.TB, want bool, expression string, of cluster.Cluster, hub cluster.Hub) {
	t.Helper()
	got, err := matches(t, expression, of, hub)
	require.NoError(t, err, expression)
	require.Equal(t, want, got, expression)
}

// requireError requires that err is a [*cel.Error] with the reason, and returns it.
func requireError(t testing.TB, err error, reason cel.Reason) *cel.Error {
	t.Helper()
	var result *cel.Error
	require.ErrorAs(t, err, &result)
	require.Equal(t, reason, result.Reason, "%v", err)
	return result
}

func cluster1() *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "cluster1",
			Labels: map[string]string{"version": "1.30.4", "cloud": "aws", "env": "prod"},
		},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 60},
		Status: clusterv1.ManagedClusterStatus{
			Capacity: clusterv1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi")},
			Version:  clusterv1.ManagedClusterVersion{Kubernetes: "v1.30.0"},
			ClusterClaims: []clusterv1.ManagedClusterClaim{
				{Name: "id.k8s.io", Value: "cluster1"},
				{Name: "kubeversion.open-cluster-management.io", Value: "1.30.4"},
				{Name: "region.open-cluster-management.io", Value: "eu-central-1"},
			},
		},
	}
}

// now is the time of all evaluations.
var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// score returns an AddOnPlacementScore of cluster1.
func score(name string, items ...clusterv1alpha1.AddOnPlacementScoreItem) *clusterv1alpha1.AddOnPlacementScore {
	return &clusterv1alpha1.AddOnPlacementScore{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: name},
		Status:     clusterv1alpha1.AddOnPlacementScoreStatus{Scores: items},
	}
}

var errBroken = errors.New("the cache is broken")

// hub returns a hub with the scores. Looking up the name "broken" fails.
func hub(scores ...*clusterv1alpha1.AddOnPlacementScore) cluster.Hub {
	find := func(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
		if name == "broken" {
			return nil, errBroken
		}
		for _, score := range scores {
			if score.Namespace == namespace && score.Name == name {
				return score, nil
			}
		}
		return nil, nil
	}
	return cluster.Hub{Scores: cluster.ScoreFinderFunc(find), Now: now}
}

// generated returns a cluster of about 5 KB of JSON.
func generated(i int) *clusterv1.ManagedCluster { return fleet.Cluster(i, now) }

// fleetOf returns n generated clusters.
func fleetOf(n int) []cluster.Cluster {
	result := make([]cluster.Cluster, n)
	for i := range result {
		result[i] = cluster.New(generated(i))
	}
	return result
}

func Example() {
	environment, err := cluster.NewEnvironment(cel.Config{})
	if err != nil {
		panic(err)
	}
	selector, err := environment.Compile(context.Background(), expressions(
		`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.29.0"))`,
		`managedCluster.metadata.?labels["cloud"].orValue("") in ["aws", "gcp"]`,
	), nil)
	if err != nil {
		panic(err)
	}
	verdict, err := selector.Match(context.Background(), cluster.New(cluster1()), cluster.Hub{})
	fmt.Println(verdict.Matches, err)
	// Output: true <nil>
}

func ExampleEnvironment_Compile_error() {
	_, err := environment.Compile(context.Background(), expressions(`true`, `managedCluster.metadata.name = "a"`), nil)
	fmt.Println(err)
	// Output:
	// celSelector.celExpressions[1]: ERROR: <input>:1:30: Syntax error: token recognition error at: '= '
	//  | managedCluster.metadata.name = "a"
	//  | .............................^
	// ERROR: <input>:1:32: Syntax error: extraneous input '"a"' expecting <EOF>
	//  | managedCluster.metadata.name = "a"
	//  | ...............................^
}

// BenchmarkMatch matches one cluster per operation.
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
