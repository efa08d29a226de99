// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package perf pins how much work the search does for each scenario and occupancy of
// package internal/testing/shape, in steps and CEL evaluations, which don't depend on the
// machine. Its benchmark measures what the defaults of budgets are derived from:
//
//	make bench
package perf
