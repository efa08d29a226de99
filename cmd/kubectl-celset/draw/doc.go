// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draw draws the devices of a node: their places and the claims that own them.
//
//	picture, err := draw.New(ctx, state, node, draw.Options{Features: features})
//	err = picture.Text(os.Stdout, color)
//	err = picture.SVG(os.Stdout)
//
// The devices of a driver form a [Panel]. Int attributes of any domain determine the places of the devices: row and col; or x,
// y and z; or topology_x, topology_y and topology_z; or index. The attributes peers, peerList and neighbors name linked
// devices, as a list or as text with commas. An element is the name of a device or the value of its attribute id.
//
// Devices without these attributes are drawn by their location in the machine: in NUMA nodes and below PCIe roots, the devices
// of all drivers together. Package topology determines the locations. Devices without a location are drawn in the order of
// allocation.
package draw
