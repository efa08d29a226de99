// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package perf checks how much work the search does for the scenarios of package internal/testing/shape. It counts steps and
// CEL evaluations, because their numbers don't depend on the machine. The benchmark measures the speeds that determine the
// default budgets:
//
//	make bench
package perf
