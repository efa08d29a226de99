// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance compares our allocator with other implementations, on random cases that package scenario draws:
//
//   - Without CEL constraints, our allocator returns the same outcome as upstream's allocator, field by field except share IDs
//     (TestSameAsUpstream). This holds even if devices are too few or selectors fail (TestSameAsUpstreamWithBounds).
//     docs/differences.md lists upstream's bugs (TestDifferences).
//   - With CEL constraints, our allocator returns the same outcome as the search of package bruteforce, which tries all sets
//     (TestSameAsBruteForce). This holds even if expressions fail (TestEvaluationFails).
//
// Each test counts the features and outcomes of its cases, and fails if one of them becomes too rare. Each run uses the same
// cases unless a flag changes them:
//
//	CELSET_NIGHTLY=4711 go test ./allocator/conformance # 100000 cases, other tests 20000, of this seed
//	go test ./allocator/conformance -rapid.checks=500
//	go test ./allocator/conformance -run='^$' -fuzz=FuzzSameAsUpstream -fuzzminimizetime=10x
//
// If outcomes differ, the test reduces the case to a small one and prints it as YAML. With -conformance.store=testdata the test
// also stores the case, and later runs of TestStoredCases replay it.
package conformance
