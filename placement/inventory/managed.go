// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// managed returns the ManagedCluster that represents a ClusterProfile. set is the set in the label of the namespace, or "". The
// result shares data with the profile.
func managed(profile *profilev1alpha1.ClusterProfile, set string) *clusterv1.ManagedCluster {
	result := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: profile.Namespace, Name: profile.Name, UID: profile.UID, Generation: profile.Generation,
			ResourceVersion: profile.ResourceVersion, CreationTimestamp: profile.CreationTimestamp, DeletionTimestamp: profile.DeletionTimestamp,
			Labels: labelsOf(profile, set), Annotations: profile.Annotations,
		},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, Taints: taintsOf(profile)},
		Status: clusterv1.ManagedClusterStatus{
			Conditions: conditionsOf(profile), Version: clusterv1.ManagedClusterVersion{Kubernetes: profile.Status.Version.Kubernetes},
		},
	}
	if set != "" {
		// If the namespace's set changes, the version of the cluster must change, too.
		result.ResourceVersion += "+" + set
	}
	if properties := profile.Status.Properties; len(properties) > 0 {
		result.Status.ClusterClaims = make([]clusterv1.ManagedClusterClaim, len(properties))
		for i, property := range properties {
			result.Status.ClusterClaims[i] = clusterv1.ManagedClusterClaim{Name: property.Name, Value: property.Value}
		}
	}
	return result
}

// labelsOf returns the labels of a profile. If the profile lacks the labels of ManagedClusters for the cluster set and the
// manager, labelsOf adds them.
func labelsOf(profile *profilev1alpha1.ClusterProfile, set string) map[string]string {
	result := profile.Labels
	add := func(key, value string) {
		if _, there := result[key]; there || value == "" || len(validation.IsValidLabelValue(value)) > 0 {
			return
		}
		added := make(map[string]string, len(result)+1)
		maps.Copy(added, result)
		added[key] = value
		result = added
	}
	add(clusterv1beta2.ClusterSetLabel, profile.Labels[profilev1alpha1.LabelClusterSetKey])
	add(clusterv1beta2.ClusterSetLabel, set)
	add(profilev1alpha1.LabelClusterManagerKey, profile.Spec.ClusterManager.Name)
	return result
}

// health returns the condition that says whether the cluster is healthy, or nil.
func health(profile *profilev1alpha1.ClusterProfile) *metav1.Condition {
	return meta.FindStatusCondition(profile.Status.Conditions, profilev1alpha1.ClusterConditionControlPlaneHealthy)
}

// conditionsOf returns the conditions of a profile. It adds the condition about availability that ManagedClusters have and that
// expressions read.
func conditionsOf(profile *profilev1alpha1.ClusterProfile) []metav1.Condition {
	healthy := health(profile)
	if healthy == nil || meta.FindStatusCondition(profile.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) != nil {
		return profile.Status.Conditions
	}
	available := *healthy
	available.Type = clusterv1.ManagedClusterConditionAvailable
	return append(slices.Clip(profile.Status.Conditions), available)
}

// taintsOf returns the taint that Open Cluster Management gives an unavailable cluster, if the cluster is not healthy. A
// cluster without a health condition gets no taint.
func taintsOf(profile *profilev1alpha1.ClusterProfile) []clusterv1.Taint {
	healthy := health(profile)
	if healthy == nil || healthy.Status == metav1.ConditionTrue {
		return nil
	}
	key := clusterv1.ManagedClusterTaintUnreachable
	if healthy.Status == metav1.ConditionFalse {
		key = clusterv1.ManagedClusterTaintUnavailable
	}
	return []clusterv1.Taint{{Key: key, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: healthy.LastTransitionTime}}
}
