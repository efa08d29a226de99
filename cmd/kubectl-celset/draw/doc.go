// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draw makes pictures of the devices of a node: where they are, and who has them.
//
//	picture, err := draw.New(ctx, state, node, draw.Options{Features: features})
//	err = picture.Text(os.Stdout, color)
//	err = picture.SVG(os.Stdout)
//
// The devices of a driver make up a [Panel]. Where they go, the driver has said in their
// attributes, whatever their domain: row and col, or x, y and z, or topology_x, topology_y
// and topology_z, or index, all of them ints; and whom they are linked to in peers, peerList or neighbors, a list of names or
// text with commas. Names are those of devices or the values of their attribute id.
//
// Devices that say nothing of the kind are drawn where they are in the machine, those of all
// drivers together: in their NUMA nodes and below their PCIe roots, as package topology finds
// them out. If there is nothing to find out either, they are drawn in the order in which
// they are allocated.
package draw
