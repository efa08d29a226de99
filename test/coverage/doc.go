// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coverage compares how much of each package its tests reach with what is recorded in
// coverage.txt, and fails if that has become less. Only the own tests of a package count, and none on an
// API server. The steps of a decision on a Placement are tested through package placement.
//
//	make test-coverage    # runs tests and compares, a part of "make nightly"
//	make coverage         # runs tests and records
//
// The order of goroutines decides about some statements, so a package may have a percentage point less,
// or two statements in a small one. A commit that records less says why.
package coverage
