// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package perf has benchmarks of the allocator, side by side in one run with
// upstream's, with the exhaustive reference and with searches written by hand:
//
//	make bench
//	go test ./test/perf -run '^$' -bench 'Shapes/scenario=grid.*/.*/nodes=1$' -count 6
//
// The names are for benchstat: the parts "allocator=" and "search=" tell the
// implementations apart.
//
// Its tests pin how much work the search does for each scenario and occupancy of
// package internal/testing/shape, in steps and CEL evaluations, which don't depend on the
// machine.
package perf
