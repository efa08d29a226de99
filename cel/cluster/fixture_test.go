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
)

// environment is shared because to make one takes many milliseconds.
var environment = func() *cluster.Environment {
	result, err := cluster.NewEnvironment(cel.Config{})
	if err != nil {
		panic(err)
	}
	return result
}()

// expressions is a selector that has nothing else.
func expressions(texts ...string) clusterv1beta1.ClusterSelector {
	return clusterv1beta1.ClusterSelector{CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: texts}}
}

func compile(t testing.TB, selector clusterv1beta1.ClusterSelector) *cluster.Selector {
	t.Helper()
	result, err := environment.Compile(selector, nil)
	require.NoError(t, err)
	return result
}

// matches evaluates one expression on one cluster.
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

// requireError demands an error of the package cel and returns it.
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

// score makes an AddOnPlacementScore of cluster1.
func score(name string, items ...clusterv1alpha1.AddOnPlacementScoreItem) *clusterv1alpha1.AddOnPlacementScore {
	return &clusterv1alpha1.AddOnPlacementScore{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: name},
		Status:     clusterv1alpha1.AddOnPlacementScoreStatus{Scores: items},
	}
}

var errBroken = errors.New("the cache is broken")

// hub has the scores, and fails for the name "broken".
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

// generated is a cluster of about 5 KB JSON, as registration and the cloud
// providers fill it. Every third one has version 1.30.
func generated(i int) *clusterv1.ManagedCluster {
	minor, name := 29+i%3, fmt.Sprintf("cluster-%05d", i)
	at := metav1.NewTime(now.Add(-time.Duration(i) * time.Minute))
	result := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "0b2a8c1e-52f8-4a4e-9c0f-3f1f5f1d1f1a", ResourceVersion: fmt.Sprint(1000 + i), Generation: 3,
			CreationTimestamp: at,
			Labels: map[string]string{
				"cloud": []string{"Amazon", "Azure", "Google"}[i%3], "vendor": "OpenShift", "name": name,
				"cluster.open-cluster-management.io/clusterset": "production", "environment": "prod",
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
			Allocatable: clusterv1.ResourceList{"cpu": resource.MustParse("7500m"), "memory": resource.MustParse("250Gi")},
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

// fleet is n generated clusters.
func fleet(n int) []cluster.Cluster {
	result := make([]cluster.Cluster, n)
	for i := range result {
		result[i] = cluster.New(generated(i))
	}
	return result
}
