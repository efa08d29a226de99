// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topology generates the devices of a node whose accelerators are wired in a given way. Demos, tests and the topology
// driver use the package. The allocator does not.
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
// Devices from other sources also form a Topology. Its kind is [Placed] if coordinates of the devices are given, and [Machine]
// if attributes give NUMA nodes and PCIe roots ([Locate]). Package machine has models of real machines. Package draw draws
// topologies.
//
// A [Topology] has its wiring twice: in attributes, which expressions read, and in [Device.Neighbors]. Tests compare the
// results of expressions with the neighbours.
package topology
