// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command celset-placement writes the PlacementDecisions of an Open Cluster Management hub. It decides Placements with the
// annotation celset.dev/placement: "true", or with --all-placements every Placement that is not disabled. --manage-bindings
// creates ManagedClusterSetBindings for sets that a ServiceAccount may bind. --inventory uses ClusterProfiles of SIG Multicluster
// as clusters. --multikueue nominates clusters of a Placement for Kueue's Workloads. --debug-bind-address serves the reasons for
// selections. See packages placement/controller, placement/binding, placement/multikueue, placement/metrics and placement/debug.
package main

import (
	_ "time/tzdata" // time zones for expressions, in case the machine has none

	"github.com/celset/celset/cmd/celset-placement/app"
	"github.com/celset/celset/internal/program"
)

func main() { program.Main(app.NewCommand()) }
