// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topology generates the devices of a node whose accelerators are wired
// in a known way, checks sets of them, and draws them. Demos, tests and the
// topology driver use it; the allocator knows nothing of it.
//
//	ring, err := topology.NewRing(topology.Family{Driver: "mla.example.com", Prefix: "mla"}, 8)
//	slices, err := ring.ResourceSlices("node-1")   // publish these
//	...
//	ring.Contiguous([]string{"mla-7", "mla-0"})    // true: the ring closes
//	err = topology.Draw(os.Stdout, ring, map[string]topology.Mark{
//		"mla-7": {State: topology.Chosen},
//		"mla-0": {State: topology.Chosen},
//		"mla-3": {State: topology.Taken, Owner: "train-a"},
//	})
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
// Devices that come from elsewhere can be drawn too: as a Topology of kind [Placed] where
// coordinates are known, and of kind [Machine] where their attributes tell NUMA nodes and
// PCIe roots, see [Locate] and [NewBoard]. Package machine has models of real machines.
//
// A [Topology] holds its wiring twice over: in the attributes that expressions
// read, and in [Device.Neighbors], from which [Topology.Connected] and the other
// checks work. That is what makes the checks a second opinion on a set that was
// found by evaluating an expression.
//
// [Topology.Layout] says where devices and links go in a drawing; [Draw] renders
// that as text.
package topology
