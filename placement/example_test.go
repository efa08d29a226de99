// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/placement"
)

func ExampleScheduler_Schedule() {
	scheduler, err := placement.NewScheduler(placement.Config{})
	if err != nil {
		panic(err)
	}
	old := managed("old", "cloud=aws")
	old.Status.Version.Kubernetes = "v1.29.3"
	first := managed("first", "cloud=aws")
	first.Status.Version.Kubernetes = "v1.31.0"
	second := managed("second", "cloud=gcp")
	second.Status.Version.Kubernetes = "v1.30.0"
	broken := tainting(managed("tainted", "cloud=gcp"), "maintenance", clusterv1.TaintEffectNoSelect)
	broken.Status.Version.Kubernetes = "v1.31.0"
	snapshot := &placement.Snapshot{
		Clusters:    []*clusterv1.ManagedCluster{old, first, second, broken},
		ClusterSets: []*clusterv1beta2.ManagedClusterSet{labelSet("global", &metav1.LabelSelector{})},
		Bindings:    []*clusterv1beta2.ManagedClusterSetBinding{binding("team", "global")},
		Decisions:   placement.NewDecisions(decision("other", "app", "app-decision-1", "first")),
	}
	object := &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"},
		Spec: clusterv1beta1.PlacementSpec{
			NumberOfClusters: number(1),
			Predicates: []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
				CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{
					`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.29.9"))`,
				}},
			}}},
		},
	}
	result, err := scheduler.Schedule(context.Background(), object, snapshot, now)
	if err != nil {
		panic(err)
	}
	fmt.Print(result.Describe())
	for _, object := range result.Decision.Objects(object) {
		fmt.Println()
		fmt.Println(object.Name, object.Status.Decisions[0])
	}
	// Output:
	// PlacementMisconfigured=False Succeedconfigured: Placement configurations check pass
	// PlacementEvaluationFailed=False EvaluationsSucceeded: All evaluations succeeded
	// PlacementSatisfied=True AllDecisionsScheduled: All cluster decisions scheduled
	//
	// sets global: 4 clusters
	// Predicate removed 1
	//   old does not match spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]
	// TaintToleration removed 1
	//   tainted has the taint maintenance:NoSelect that is not tolerated
	//
	// CLUSTER  TOTAL  Balance*1  Steady*1  VERDICT
	// second   100    100        0         selected
	// first    -100   -100       0         is not among the first 1
	//
	// app-decision-1 {second in ManagedClusterSet global, matches spec.predicates[0] 100}
}
