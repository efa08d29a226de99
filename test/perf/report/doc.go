// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report makes docs/performance.md from what test/perf/scheduler_perf and test/soak
// measured, and docs/trace.md from what test/perf/trace did.
//
//	make perf                # measures; raw results go to PERF_RESULTS
//	make perf-report         # condenses them to docs/performance/results.json, in the place of
//	                         # what is kept of the same workloads, and writes
//	                         # the page and its plots from that
//
// The page is made from docs/performance alone, so it can be written again without
// measuring, and a test finds out if it is not what the results say. Text of the page that
// is not about numbers is in this package, too.
package report
