// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fragmentation reports how fragmented the free devices of a cluster are. For each shape ([allocator.Shape]) it counts
// the additional claims that would get devices in three situations: now, after other devices have been chosen for the allocated
// claims, and with no device in use. It changes no claim.
//
//	report, err := fragmentation.New(ctx, problem, nodes, fragmentation.Options{})
//
// Package fragmentation counts the claims that fit now, and on idle nodes, with [allocator.Allocator.CountSets]. The best
// devices for all allocated claims can't be computed. So the package allocates all claims again, the largest first, each to the
// node and the devices that break the fewest sets. The number that fits after this packing is a lower bound of the maximum.
//
// Claims represent their pods. Other requirements of pods (node selectors, CPU, memory) are ignored.
package fragmentation
