// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance compares the allocator with others on the same random input, which the package
// scenario draws:
//
//   - Without CEL constraints it answers as upstream's allocator, field by field but for share IDs
//     (TestSameAsUpstream), also where devices are too few and selectors fail
//     (TestSameAsUpstreamWithBounds). docs/differences.md lists where
//     upstream is wrong (TestDifferences).
//   - With CEL constraints it answers as the search of the package bruteforce, which tries everything
//     (TestSameAsBruteForce), also with expressions that fail (TestEvaluationFails).
//
// Each test counts which features the cases had and how allocations ended, and fails if one of them no
// longer occurs often enough. Cases are the same in each run unless told otherwise:
//
//	CELSET_NIGHTLY=4711 go test ./allocator/conformance # 100000 cases, other tests 20000, of this seed
//	go test ./allocator/conformance -rapid.checks=500
//	go test ./allocator/conformance -run='^$' -fuzz=FuzzSameAsUpstream -fuzzminimizetime=10x
//
// A mismatch is reduced to a small case and printed as YAML. With -conformance.store=testdata it is also
// stored, and TestStoredCases replays it from then on.
package conformance
