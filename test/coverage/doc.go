// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coverage has no code of its own. Its test compares how much of each package its tests
// reach with what is recorded in coverage.txt, and fails if that has become less.
//
//	make test-coverage    # runs tests and compares, a part of "make nightly"
//	make coverage         # runs tests and records
//
// What is compared are the libraries and the plugin, with the cases of landing. A
// package has what its own tests reach: statements that only tests of other packages reach, or tests
// on an API server, don't count.
//
// The order of goroutines decides about some statements. So a package may have a
// percentage point less, or two statements in a small one. Who removes what was well tested may find
// that the rest is less so: record it, and say why in the commit.
package coverage
