// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coverage measures the share of each package's statements that its tests run, and fails if the share is smaller than
// recorded in coverage.txt. Only the package's own tests count, not tests with an API server. The tests of package placement
// count for its internal packages, too.
//
//	make test-coverage    # runs tests and compares, a part of "make nightly"
//	make coverage         # runs tests and records
//
// A loss of one percentage point, or of two statements in a small package, is accepted, because some statements run only if
// goroutines run in a certain order. A commit that records a lower share says why.
package coverage
