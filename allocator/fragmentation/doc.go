// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fragmentation tells how much of what is free in a cluster can be had as sets: for each
// shape that somebody may ask for ([allocator.Shape]) how many more claims would get devices now, how
// many if the same claims had other devices, and how many if nothing were in use. No claim is moved.
//
//	report, err := fragmentation.New(ctx, problem, nodes, fragmentation.Options{})
//
// Of three numbers only one is a promise. What fits now is counted ([allocator.Allocator.CountSets]).
// What would fit if the claims had the best devices nobody knows: all claims are allocated anew, the
// largest first, to the node and the devices that break the least, and what fits then was found, and
// not proven to be the most.
//
// Claims stand for their pods. What else pods want of nodes (node selectors, CPU, memory) plays no
// role.
package fragmentation
