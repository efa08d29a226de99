// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory says where a hub has its clusters: as ManagedClusters of Open Cluster
// Management, or as ClusterProfiles of SIG Multicluster.
//
//	controller.Add(mgr, controller.Options{Inventory: inventory.ClusterProfiles{Namespace: "fleet"}})
//
// Whatever stands for a cluster is decided on as a ManagedCluster: expressions, selectors,
// taints and prioritizers have one form. What a ClusterProfile has no place for is absent, as it
// is in a ManagedCluster that does not say it.
//
// # From a ClusterProfile to a ManagedCluster
//
// Name, labels, annotations and times are the same. Properties are claims, the version is
// the version, conditions are conditions. ControlPlaneHealthy is
// ManagedClusterConditionAvailable as well, and unless it is True the cluster has the taint
// that Open Cluster Management gives such a cluster. Where no label of the profile names
// a cluster set, that of its namespace does.
//
// # Why one namespace
//
// A PlacementDecision has the names of clusters, and no namespaces; so have the scores of
// a cluster, which are in the namespace of its name. Names of ClusterProfiles are unique in one
// namespace only, which is also what SIG Multicluster groups them by.
package inventory
