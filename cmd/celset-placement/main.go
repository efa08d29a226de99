// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command celset-placement keeps the PlacementDecisions of an Open Cluster Management
// hub as the Placements say: those with the annotation celset.dev/placement: "true",
// or with --all-placements every one that is not disabled. With --manage-bindings it also
// turns rights of ServiceAccounts into ManagedClusterSetBindings, with --inventory the
// clusters are ClusterProfiles of SIG Multicluster, with --multikueue the clusters of a
// Placement are nominated for Kueue's Workloads, and with
// --debug-bind-address it tells why a Placement selects what it selects. See packages
// placement/controller, placement/binding, placement/multikueue, placement/metrics and placement/debug.
package main

import (
	_ "time/tzdata" // for expressions, where the machine has no time zones

	"github.com/celset/celset/cmd/celset-placement/app"
	"github.com/celset/celset/internal/program"
)

func main() { program.Main(app.NewCommand()) }
