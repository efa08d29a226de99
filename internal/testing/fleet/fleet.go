// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet generates ManagedClusters for demonstrations, benchmarks and tests. The same number always gives the same
// cluster.
package fleet

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// ClusterSet is the ManagedClusterSet of all clusters.
const ClusterSet = "production"

// Cluster returns cluster number i, about 5 KB of JSON with the fields that registration and a cloud provider set. The cluster
// is in the set [ClusterSet], in one of three clouds and four regions, with a version from 1.29 to 1.31. It joined i minutes
// before now. Below 100,000, the names of clusters sort by number.
func Cluster(i int, now time.Time) *clusterv1.ManagedCluster {
	minor, name := 29+i%3, fmt.Sprintf("cluster-%05d", i)
	at := metav1.NewTime(now.Add(-time.Duration(i) * time.Minute))
	result := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "0b2a8c1e-52f8-4a4e-9c0f-3f1f5f1d1f1a", ResourceVersion: fmt.Sprint(1000 + i), Generation: 3,
			CreationTimestamp: at,
			Labels: map[string]string{
				"cloud": []string{"Amazon", "Azure", "Google"}[i%3], "vendor": "OpenShift", "name": name,
				clusterv1beta2.ClusterSetLabel: ClusterSet, "environment": "prod",
				"version": fmt.Sprintf("1.%d.%d", minor, i%9), "region": fmt.Sprintf("eu-central-%d", i%4),
			},
			Annotations: map[string]string{"open-cluster-management/created-via": "other"},
			Finalizers:  []string{"cluster.open-cluster-management.io/api-resource-cleanup"},
		},
		Spec: clusterv1.ManagedClusterSpec{
			HubAcceptsClient: true, LeaseDurationSeconds: 60,
			ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "https://api." + name + ".example.com:6443", CABundle: make([]byte, 900)}},
		},
		Status: clusterv1.ManagedClusterStatus{
			Version:     clusterv1.ManagedClusterVersion{Kubernetes: fmt.Sprintf("v1.%d.0", minor)},
			Capacity:    clusterv1.ResourceList{"cpu": *resource.NewQuantity(int64(8+i%64), resource.DecimalSI), "memory": resource.MustParse("256Gi")},
			Allocatable: clusterv1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(7500+i%64*1000), resource.DecimalSI), "memory": resource.MustParse("250Gi")},
		},
	}
	for _, condition := range []string{"HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"} {
		result.Status.Conditions = append(result.Status.Conditions, metav1.Condition{
			Type: condition, Status: "True", Reason: condition, Message: "Managed cluster is fine", LastTransitionTime: at,
		})
	}
	for j := range 9 {
		result.Status.ClusterClaims = append(result.Status.ClusterClaims, clusterv1.ManagedClusterClaim{
			Name: fmt.Sprintf("property-%d.open-cluster-management.io", j), Value: fmt.Sprintf("value %d of %s", j, name),
		})
	}
	result.Status.ClusterClaims = append(result.Status.ClusterClaims, clusterv1.ManagedClusterClaim{
		Name: "kubeversion.open-cluster-management.io", Value: fmt.Sprintf("1.%d.%d", minor, i%9),
	})
	for _, manager := range []string{"registration", "registration-operator", "kubectl-create"} {
		result.ManagedFields = append(result.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "cluster.open-cluster-management.io/v1",
			Time: &at, FieldsType: "FieldsV1", FieldsV1: managedFields(),
		})
	}
	return result
}

func managedFields() *metav1.FieldsV1 {
	return metav1.NewFieldsV1(`{"f:status":{"f:allocatable":{".":{},"f:cpu":{},"f:memory":{}},"f:capacity":{".":{},"f:cpu":{},"f:memory":{}},` +
		`"f:clusterClaims":{},"f:conditions":{"k:{\"type\":\"ManagedClusterJoined\"}":{".":{},"f:lastTransitionTime":{},"f:message":{}}},` +
		`"f:version":{"f:kubernetes":{}}},"f:metadata":{"f:labels":{".":{},"f:cloud":{},"f:vendor":{}}}}`)
}
