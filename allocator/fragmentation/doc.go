// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fragmentation counts how many sets the free devices of a cluster allow. For each shape ([allocator.Shape]) it counts
// how many more claims would get devices: now, with other devices for the same claims, and with no device in use. It moves no
// claim.
//
//	report, err := fragmentation.New(ctx, problem, nodes, fragmentation.Options{})
//
// Only one of the three numbers is exact: the claims that fit now are counted ([allocator.Allocator.CountSets]). The best devices
// for all claims can't be computed. So all claims are allocated again, the largest first, to the node and the devices that break
// the fewest sets. The number that fits then is a result of that packing, not a proven maximum.
//
// Claims represent their pods. Other requirements of pods (node selectors, CPU, memory) are ignored.
package fragmentation
