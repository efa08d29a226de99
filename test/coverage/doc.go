// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coverage compares the share of each package that its tests reach with the record in coverage.txt, and fails if a share
// has fallen. Only a package's own tests count, and no tests on an API server. The tests of package placement reach its internal
// packages, too.
//
//	make test-coverage    # runs tests and compares, a part of "make nightly"
//	make coverage         # runs tests and records
//
// The order of goroutines decides whether some statements run, so a package may lose a percentage point, or two statements in a
// small package. A commit that records a lower share says why.
package coverage
