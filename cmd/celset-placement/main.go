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
	"context"
	_ "time/tzdata" // for expressions, where the machine has no time zones

	"github.com/spf13/cobra"

	"github.com/celset/celset/internal/program"
)

func main() { program.Main(newCommand(newOptions())) }

func newCommand(o *options) *cobra.Command {
	return program.NewCommand("celset-placement", "Choose ManagedClusters for Placements and keep their PlacementDecisions", o,
		func(ctx context.Context) error { return o.Run(ctx, o.manager) })
}
