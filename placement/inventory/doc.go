// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory reads the clusters of a hub: ManagedClusters of Open Cluster Management or ClusterProfiles of SIG
// Multicluster.
//
//	controller.Add(mgr, controller.Options{Inventory: inventory.ClusterProfiles{Namespace: "fleet"}})
//
// Every cluster is represented as a ManagedCluster, so that expressions, selectors, taints and prioritizers have one form. Fields
// that a ClusterProfile lacks are absent.
//
// # From a ClusterProfile to a ManagedCluster
//
// Name, labels, annotations, times, version and conditions are the same. Properties become claims. The condition
// ControlPlaneHealthy is copied to ManagedClusterConditionAvailable. If its status is not True, the cluster gets the taint that
// Open Cluster Management gives an unavailable cluster. If no label of the profile names a cluster set, the label of its
// namespace counts.
//
// # Why one namespace
//
// A PlacementDecision names clusters without a namespace. The scores of a cluster are in the namespace of its name. Names of
// ClusterProfiles are unique within one namespace only, and SIG Multicluster groups ClusterProfiles by namespace, too.
package inventory
