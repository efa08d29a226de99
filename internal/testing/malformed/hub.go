// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package malformed

import (
	"math"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/cel/cluster"
)

// Cluster draws a ManagedCluster.
func Cluster(random *rand.Rand) *clusterv1.ManagedCluster {
	s := from(random)
	result := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: s.name(), UID: types.UID(s.text("u", "")), ResourceVersion: s.text("1", "2"),
		Labels: s.labels(clusterv1beta2.ClusterSetLabel),
	}}
	if s.wrong() {
		result.DeletionTimestamp = &metav1.Time{}
	}
	result.Spec.Taints = list(s, func() clusterv1.Taint {
		return clusterv1.Taint{
			Key: s.name(), Value: s.name(), Effect: clusterv1.TaintEffect(s.text("PreferNoSelect", "NoSelectIfNew", "NoSelect")),
			TimeAdded: metav1.NewTime(s.time()),
		}
	})
	result.Status.ClusterClaims = list(s, func() clusterv1.ManagedClusterClaim {
		return clusterv1.ManagedClusterClaim{Name: s.name(), Value: s.text("a", "", "1.30.1", `{"a":1}`)}
	})
	result.Status.Version.Kubernetes = s.text("v1.30.1", "1.2", "")
	result.Status.Allocatable, result.Status.Capacity = s.resources(), s.resources()
	return result
}

func (s source) time() time.Time {
	return time.Unix(pick(s, []int64{0, 1, 2_000_000_000, -62135596800, 253402300799}...), 0).UTC()
}

func (s source) resources() clusterv1.ResourceList {
	result := clusterv1.ResourceList{}
	for range s.IntN(3) {
		amount := pick(s, []string{"1", "0", "-5", "250m", "1Ti", "9E", "1e18", "0.000000001"}...)
		result[clusterv1.ResourceName(s.text("cpu", "memory"))] = resource.MustParse(amount)
	}
	if s.wrong() {
		result["cpu"] = *resource.NewQuantity(math.MinInt64, resource.BinarySI)
	}
	return result
}

// Score draws an AddOnPlacementScore.
func Score(random *rand.Rand) *clusterv1alpha1.AddOnPlacementScore {
	s := from(random)
	result := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.name(), Name: s.name(), ResourceVersion: s.text("1", "2"),
		Annotations: map[string]string{cluster.QuantitiesAnnotation: s.text(`{"a":"5"}`, `{"a":"1Gi","b":"?"}`, `{"a":1}`, `[]`, `{`)},
	}}
	result.Status.Scores = list(s, func() clusterv1alpha1.AddOnPlacementScoreItem {
		return clusterv1alpha1.AddOnPlacementScoreItem{Name: s.name(), Value: s.number(-100, 0, 50, 100)}
	})
	result.Status.ValidUntil = maybe(s, func() metav1.Time { return metav1.NewTime(s.time()) })
	return result
}

// Set draws a ManagedClusterSet.
func Set(random *rand.Rand) *clusterv1beta2.ManagedClusterSet {
	s := from(random)
	result := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: s.name()}}
	result.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType:  clusterv1beta2.SelectorType(s.text("", "LabelSelector", "ExclusiveClusterSetLabel")),
		LabelSelector: maybe(s, s.labelSelector),
	}
	return result
}

// Binding draws a ManagedClusterSetBinding.
func Binding(random *rand.Rand) *clusterv1beta2.ManagedClusterSetBinding {
	s := from(random)
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name(), Name: s.name()},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: s.name()},
	}
}

// Decision draws a PlacementDecision.
func Decision(random *rand.Rand) *clusterv1beta1.PlacementDecision {
	s := from(random)
	result := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.name(), Name: s.name(), Labels: map[string]string{s.text(clusterv1beta1.PlacementLabel): s.name()},
	}}
	result.Status.Decisions = list(s, func() clusterv1beta1.ClusterDecision {
		return clusterv1beta1.ClusterDecision{ClusterName: s.name(), Score: int64(s.number(1)), Reason: s.text("")}
	})
	return result
}
