// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demo shows, on a running control plane with celset-scheduler, what a
// set constraint is for: nodes with rings and meshes of accelerators, some of
// them taken, and pods that want connected ones.
//
//	err := demo.Run(ctx, demo.Options{Config: cp.RESTConfig(), Examples: dir, Out: os.Stdout})
//
// [RunReal] goes on to what a container knows, on a node of package realnode, and
// [RunFleet] begins with the cluster, which a hub selects.
//
// Whatever it says about the outcome it has read back from the API and checked
// against the topology, independently of the constraint's expression; if
// something is not so, Run fails.
package demo
