// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bound decides early: it computes the possible results of an expression over "devices" when only a part of the set is
// chosen, without evaluating the expression.
//
//	analysis := bound.Analyze(expression, 4)
//	tables := analysis.Tabulate(devices)    // shared by any number of searches
//	bounds := tables.NewBounds(ctx, budget) // for one search
//	if bounds.Infeasible(partial, bound.Quick) { /* no completion satisfies it */ }
//
// # How
//
// [Analyze] reads the expression once for sets of one size (package read). Each iteration variable over devices gets a number,
// its slot. Each conjunct becomes a condition:
//
//   - A part that refers to a single device is a leaf. CEL evaluates it for each device, and the results form a column.
//   - A part that compares two devices, d != o && d.row == o.row, is a predicate. It is computed from columns, or by CEL if
//     columns are not enough, and stored as rows of bits. So it may use any function, and an entry may also be an error.
//   - A part that refers to the set (quantifiers, counts, minima and maxima, sums and comparisons of them) has bounds over
//     all completions of a partial set.
//   - Any other part is open: it may have any result.
//
// An [Outcome] is the set of possible results: true, false, an error. A search cuts a branch only if every completion is false,
// without an error in any of them. CEL absorbs errors: "false && error" is false, and the bounds here do the same. Some functions
// panic instead. A part with such a function is evaluated for each device before bounds are given (propagate.Guard).
//
// [Bounds.Infeasible] also propagates the conditions to a fixpoint. It removes devices that are only in false completions, and
// finds devices that are in all other completions.
//
// # Where to read
//
// Each package imports only packages above it in this list:
//
//	outcome    bools and ints that are not yet determined
//	key        values that can be compared in Go
//	normal     rules that rewrite several spellings into one
//	propagate  partial sets, tables of CEL's results, and the fixpoint
//	condition  conditions, numbers and global constraints
//	read       expressions into conditions
//	bound      this package: the API for a search
//
// # To add a rule
//
// A rule rewrites another spelling of a condition that is already understood. It needs an entry in normal/rules.go, and an
// expression in the file of its family in testdata/rules. A transcript there lists the applied rules, their results, and the
// bounds (go test -run TestRules -rewrite). Rules apply to conditions on the set that are neither leaves nor bindings
// (read/analyze.go). All spellings of an equality are read in one place. Add the expression to the constructs of
// constructs_test.go, too. That test compares constructs with CEL on devices with missing or odd attributes, which the
// transcripts lack.
//
// # To add a kind of condition
//
// The comment of package condition explains how. Tests compare the bounds of random partial sets with all completions. The
// expressions come from grammar.txt of internal/testing/randomexpr. For required devices and for the status they come from
// counting in propagation_test.go. Add the new construct to both.
//
// # What it promises
//
// The results of Bound include the result of every completion. A device that Infeasible removes is only in false completions. A
// forced device is in all other completions. Results that include too much only cost time. Results that include too little would
// be wrong.
package bound
