// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draw draws the devices of a node: their places and their owners.
//
//	picture, err := draw.New(ctx, state, node, draw.Options{Features: features})
//	err = picture.Text(os.Stdout, color)
//	err = picture.SVG(os.Stdout)
//
// The devices of a driver form a [Panel]. Their attributes, of any domain, determine their places: row and col; or x, y and z; or
// topology_x, topology_y and topology_z; or index. These are ints. The attributes peers, peerList and neighbors list linked
// devices, as a list or as text with commas. They hold device names or values of the attribute id.
//
// Devices without these attributes are drawn by their location in the machine, the devices of all drivers together: in NUMA nodes
// and below PCIe roots, as package topology finds them. Devices without a location are drawn in the order of allocation.
package draw
