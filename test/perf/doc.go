// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package perf pins the work of the search for each scenario and occupancy of package internal/testing/shape, in steps and CEL
// evaluations, which don't depend on the machine. Its benchmark measures the basis of the default budgets:
//
//	make bench
package perf
