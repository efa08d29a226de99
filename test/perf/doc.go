// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package perf has benchmarks of the allocator, side by side with upstream's in
// one run:
//
//	make bench
//
// The names are for benchstat: the part "allocator=" tells the two apart.
package perf
