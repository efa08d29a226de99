// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory reads the clusters of a hub: ManagedClusters of Open Cluster Management or ClusterProfiles of SIG
// Multicluster.
//
//	controller.Add(mgr, controller.Options{Inventory: inventory.ClusterProfiles{Namespace: "fleet"}})
//
// Every cluster is represented as a ManagedCluster, so that expressions, selectors, taints and prioritizers read only one kind.
// Fields that a ClusterProfile lacks are absent.
//
// # From a ClusterProfile to a ManagedCluster
//
// Name, labels, annotations, times, version and conditions are the same. Properties become claims. The condition
// ControlPlaneHealthy is copied to ManagedClusterConditionAvailable. If its status is not True, the cluster gets the taint that
// Open Cluster Management gives an unavailable cluster. If the profile has no label for a cluster set, the label of its
// namespace is used.
//
// # Why one namespace
//
// A PlacementDecision names clusters without a namespace, and the scores of a cluster are in the namespace that has the
// cluster's name. But names of ClusterProfiles are unique only within one namespace. SIG Multicluster groups ClusterProfiles by
// namespace, too.
package inventory
