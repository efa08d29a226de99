// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance compares the allocator with others on the same random input, drawn by package scenario:
//
//   - Without CEL constraints it answers like upstream's allocator, field by field except share IDs (TestSameAsUpstream), even if
//     devices are too few or selectors fail (TestSameAsUpstreamWithBounds). docs/differences.md lists upstream's bugs
//     (TestDifferences).
//   - With CEL constraints it answers like the search of package bruteforce, which tries everything (TestSameAsBruteForce), even
//     if expressions fail (TestEvaluationFails).
//
// Each test counts the features of its cases and the outcomes, and fails if one of them becomes too rare. Cases are the same in
// each run unless a flag changes them:
//
//	CELSET_NIGHTLY=4711 go test ./allocator/conformance # 100000 cases, other tests 20000, of this seed
//	go test ./allocator/conformance -rapid.checks=500
//	go test ./allocator/conformance -run='^$' -fuzz=FuzzSameAsUpstream -fuzzminimizetime=10x
//
// A mismatch is reduced to a small case and printed as YAML. With -conformance.store=testdata it is also stored, and later runs
// of TestStoredCases replay it.
package conformance
