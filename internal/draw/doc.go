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
// [NewLayout] positions devices and links, and [Text] renders the layout. A [topology.Machine] is drawn by NUMA node and PCIe
// root, see [NewBoard]. [TextOfTies] lists devices of several drivers that belong together.
package draw
