// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topology generates the devices of a node whose accelerators have a given wiring. Demos, tests and the topology driver
// use it. The allocator does not use it.
//
//	ring, err := topology.NewRing(topology.Family{Driver: "mla.example.com", Prefix: "mla"}, 8)
//	slices, err := ring.ResourceSlices("node-1")   // publish these
//
// There are six kinds of wiring:
//
//	NewRing            a closed chain; attribute index
//	NewMesh            a grid; attributes row, col
//	NewTorus           a grid whose rows and columns close; attributes row, col
//	NewBridgePairs     GPUs that share a bridge two by two; attribute bridge
//	NewCouples         a GPU and a NIC below each PCIe root complex, two drivers;
//	                   attribute resource.kubernetes.io/pcieRoot
//	NewHybridCubeMesh  two fully linked quads with a link from each device to
//	                   its counterpart; attributes id, peers and, if asked for,
//	                   peerList
//
// Devices from other sources have a Topology, too. Its kind is [Placed] if coordinates are given, or [Machine] if attributes give
// NUMA nodes and PCIe roots, see [Locate]. Package machine models real machines. Package draw draws topologies.
//
// A [Topology] holds its wiring twice: in attributes, which expressions read, and in [Device.Neighbors], which tests compare with
// the results of expressions.
package topology
