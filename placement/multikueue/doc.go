// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package multikueue is an external dispatcher for Kueue's MultiKueue. It nominates worker clusters for a Workload: the
// clusters that a Placement selects.
//
//	mgr, err := manager.New(config, manager.Options{Cache: multikueue.Cache(cache.Options{})})
//	err = multikueue.Add(mgr, multikueue.Options{})
//
// # Dispatched Workloads
//
// A Workload is dispatched if its quota is reserved, its admission check of the controller kueue.x-k8s.io/multikueue is
// pending, and no cluster is assigned to it. Its label cluster.open-cluster-management.io/placement names a Placement in its
// namespace. Kueue copies the label from the job if Kueue's configuration lists the label in labelKeysToCopy. A Workload
// without the label may run on any cluster, so all clusters are nominated.
//
// # Nominated clusters
//
// A cluster is nominated if the Placement selects it and the MultiKueueConfig of the admission check lists it, under the same
// name. The first decision group is nominated when quota is reserved. Each time that [Options.Round] ends without an admission,
// one more group is nominated. So a Placement with sortBy Score and clustersPerDecisionGroup 1 offers a Workload to the best
// cluster first. If the order changes, the clusters that are now first are nominated, too. A cluster that is no longer selected
// loses its nomination, and Kueue withdraws the Workload from it. An evicted Workload restarts with the first group. The
// controller stores no state of its own.
//
// # How a nomination is written
//
// The controller writes a nomination by server-side apply, as Kueue's own field manager. Otherwise Kueue could not remove the
// nomination when it assigns a cluster, because nominatedClusterNames and clusterName are mutually exclusive. The apply repeats
// all fields that this field manager owns, based on the version that was read.
package multikueue
