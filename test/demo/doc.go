// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demo shows the use of set constraints and Placements on running control planes.
//
//   - [Run]: nodes with rings, meshes and a torus of accelerators, some of them taken, and pods that want connected accelerators.
//   - [RunReal]: the same up to the log of a container, on a node of package realnode.
//   - [RunPlacement]: a hub with 200 clusters, and Placements that select some of them.
//   - [RunFleet]: a hub and three clusters. A Placement selects the cluster that has a pod's devices.
//
// A demo only shows; tests elsewhere check. It fails only if an expected change does not happen within a minute.
package demo
