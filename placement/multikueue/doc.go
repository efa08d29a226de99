// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package multikueue is an external dispatcher of Kueue's MultiKueue: it nominates the worker clusters of a Workload as a Placement
// decides.
//
//	mgr, err := manager.New(config, manager.Options{Cache: multikueue.Cache(cache.Options{})})
//	err = multikueue.Add(mgr, multikueue.Options{})
//
// # Which Workloads
//
// Those that have quota reserved, whose admission check of the controller kueue.x-k8s.io/multikueue is pending, and that are not
// assigned to a cluster yet. A Workload names a Placement in its namespace by the label cluster.open-cluster-management.io/placement,
// which Kueue copies from its job when it is among the labelKeysToCopy. One without the label is nominated all clusters at once, as by
// Kueue itself.
//
// # Which clusters
//
// Those that the Placement decides and the MultiKueueConfig of the admission check has, under the same name. They are nominated by
// decision groups: the first one when quota is reserved, and one more after each [Options.Round] in which no cluster admitted the
// Workload. So a Placement with sortBy Score and clustersPerDecisionGroup 1 offers a Workload to the best cluster first. When the order
// of the clusters changes, those that are first now are nominated, too. A cluster that is not decided any more is not nominated any more,
// and Kueue withdraws the Workload from it. A Workload that is evicted begins with the first group again. All of that follows from what
// the Workload and the Placement say: nothing is remembered.
//
// # How a nomination is written
//
// By server-side apply in the name of Kueue's own field manager, or Kueue could not take it back when it assigns a cluster: the fields
// are mutually exclusive. What that manager owns already is applied with it, from the version that it was read from.
package multikueue
