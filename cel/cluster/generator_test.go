// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"
)

// managedClusters draws clusters in which any field may be missing, empty or
// filled.
var managedClusters = rapid.Custom(func(t *rapid.T) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{Kind: text1(t), APIVersion: text1(t)},
		ObjectMeta: metadata(t),
		Spec: clusterv1.ManagedClusterSpec{
			HubAcceptsClient:     rapid.Bool().Draw(t, "accepts"),
			LeaseDurationSeconds: rapid.SampledFrom([]int32{0, 60, -1}).Draw(t, "lease"),
			Taints: several(t, func() clusterv1.Taint {
				return clusterv1.Taint{Key: text1(t), Value: text1(t), Effect: clusterv1.TaintEffect(text1(t)), TimeAdded: moment(t)}
			}),
			ManagedClusterClientConfigs: several(t, func() clusterv1.ClientConfig {
				return clusterv1.ClientConfig{URL: text1(t), CABundle: several(t, func() byte { return rapid.Byte().Draw(t, "byte") })}
			}),
		},
		Status: clusterv1.ManagedClusterStatus{
			Conditions:  several(t, func() metav1.Condition { return condition(t) }),
			Capacity:    resources(t),
			Allocatable: resources(t),
			Version:     clusterv1.ManagedClusterVersion{Kubernetes: text1(t)},
			ClusterClaims: several(t, func() clusterv1.ManagedClusterClaim {
				return clusterv1.ManagedClusterClaim{Name: text1(t), Value: text1(t)}
			}),
			ManagedNamespaces: several(t, func() clusterv1.ClusterSetManagedNamespaceConfig {
				return clusterv1.ClusterSetManagedNamespaceConfig{
					ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: text1(t)},
					ClusterSet:             text1(t),
					Conditions:             several(t, func() metav1.Condition { return condition(t) }),
				}
			}),
		},
	}
})

func metadata(t *rapid.T) metav1.ObjectMeta {
	result := metav1.ObjectMeta{
		Name: text1(t), GenerateName: text1(t), Namespace: text1(t), UID: types.UID(text1(t)),
		Generation:        rapid.Int64Range(-1, 1).Draw(t, "generation"),
		CreationTimestamp: moment(t),
		Labels:            labelled(t),
		Annotations:       labelled(t),
		Finalizers:        several(t, func() string { return text1(t) }),
		OwnerReferences: several(t, func() metav1.OwnerReference {
			return metav1.OwnerReference{Kind: text1(t), Controller: rapid.Ptr(rapid.Bool(), true).Draw(t, "controller")}
		}),
		ManagedFields: several(t, func() metav1.ManagedFieldsEntry {
			at := moment(t)
			entry := metav1.ManagedFieldsEntry{Manager: text1(t), Operation: "Update", Time: &at}
			if rapid.Bool().Draw(t, "fields") {
				entry.FieldsV1 = metav1.NewFieldsV1(`{"f:status":{"f:version":{},"f:n":1}}`)
			}
			return entry
		}),
		DeletionGracePeriodSeconds: rapid.Ptr(rapid.Int64Range(0, 1), true).Draw(t, "grace"),
	}
	if at := moment(t); rapid.Bool().Draw(t, "deleted") {
		result.DeletionTimestamp = &at
	}
	return result
}

func condition(t *rapid.T) metav1.Condition {
	return metav1.Condition{
		Type: text1(t), Status: metav1.ConditionStatus(text1(t)), Reason: text1(t), Message: text1(t),
		ObservedGeneration: rapid.Int64Range(0, 1).Draw(t, "observed"), LastTransitionTime: moment(t),
	}
}

// several draws nil, an empty slice or up to three elements.
func several[E any](t *rapid.T, element func() E) []E {
	n := rapid.IntRange(-1, 3).Draw(t, "n")
	if n < 0 {
		return nil
	}
	result := make([]E, n)
	for i := range result {
		result[i] = element()
	}
	return result
}

func text1(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "a", "b", "version", "v1.30.0", "1.30.4", "ä\n\"<&"}).Draw(t, "text")
}

func labelled(t *rapid.T) map[string]string {
	return rapid.SampledFrom([]map[string]string{nil, {}, {"a": "b"}, {"version": "1.30.4", "": "", "b": "a"}}).Draw(t, "labels")
}

func moment(t *rapid.T) metav1.Time {
	return rapid.SampledFrom([]metav1.Time{{}, metav1.NewTime(time.Unix(1785585600, 123).UTC()),
		metav1.NewTime(time.Unix(1785585600, 0).In(time.FixedZone("", 7200)))}).Draw(t, "time")
}

func resources(t *rapid.T) clusterv1.ResourceList {
	return rapid.SampledFrom([]clusterv1.ResourceList{nil, {}, {"cpu": resource.MustParse("7500m")},
		{"cpu": *resource.NewQuantity(4, resource.DecimalSI), "memory": resource.MustParse("1.5Gi"), "gpu": {}}}).Draw(t, "resources")
}
