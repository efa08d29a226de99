// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draw draws topologies as text. It also arranges the devices of a machine for other kinds of drawings.
//
//	err = draw.Text(os.Stdout, ring, map[string]draw.Mark{
//		"mla-7": {State: draw.Chosen},
//		"mla-0": {State: draw.Chosen},
//		"mla-3": {State: draw.Taken, Owner: "train-a"},
//	})
//
// [NewLayout] computes the positions of devices and links, and [Text] draws them as text. A [topology.Machine] is drawn by NUMA
// node and PCIe root ([NewBoard]). [TextOfTies] lists groups of devices of several drivers that belong together.
package draw
