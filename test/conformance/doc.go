// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance holds the allocator to its promise by running it beside
// others on the same random input:
//
//   - Without CEL constraints it must answer as upstream's allocator does, field
//     by field but for share IDs, which are random (TestSameAsUpstream). The
//     features are on and off at random.
//   - The same where too few devices exist and selectors fail on some of them: the
//     search is cut short then, and must not miss an error
//     (TestSameAsUpstreamWithBounds).
//   - With CEL constraints it must answer as a search that tries everything
//     (TestSameAsBruteForce). That search is in the package bruteforce, and is
//     itself compared with upstream.
//   - The same with expressions that fail, also if too few devices exist
//     (TestEvaluationFails).
//
// The input comes from the package scenario. Each test counts which features the
// cases had, how the allocation ended and whether the feature mattered, and fails
// if one of them no longer occurs often enough; the tables are printed with -v.
//
// The cases are the same in each run unless told otherwise:
//
//	go test ./test/conformance                     # 15000 cases, other tests 3000
//	CELSET_NIGHTLY=4711 go test ./test/conformance # 100000 cases, other tests 20000, of this seed
//	go test ./test/conformance -rapid.checks=500
//	go test ./test/conformance -run='^$' -fuzz=FuzzSameAsUpstream -fuzzminimizetime=10x
//
// A mismatch is reduced to a small case and printed as YAML. With
// -conformance.store=testdata it is also stored, and from then on replayed by
// TestStoredCases; give such a file a name and a description.
//
// Upstream is right, except for what docs/comparison.md#differences-from-upstreams-allocator lists (TestDifferences).
package conformance
