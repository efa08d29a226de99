// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draw draws topologies as text, and arranges the devices of a machine for other drawings.
//
//	err = draw.Text(os.Stdout, ring, map[string]draw.Mark{
//		"mla-7": {State: draw.Chosen},
//		"mla-0": {State: draw.Chosen},
//		"mla-3": {State: draw.Taken, Owner: "train-a"},
//	})
//
// [NewLayout] says where devices and links go in a drawing, and [Text] renders that. The devices
// of a [topology.Machine] are drawn below their NUMA nodes and PCIe roots, see [NewBoard].
// [TextOfTies] lists the devices of several drivers that belong together.
package draw
