// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bound computes the possible results of an expression over "devices" when only a part of the set is chosen, so that a
// search can reject a partial set without evaluating the expression.
//
//	analysis := bound.Analyze(expression, 4)
//	tables := analysis.Tabulate(devices)    // shared by any number of searches
//	bounds := tables.NewBounds(ctx, budget) // for one search
//	if bounds.Infeasible(partial, bound.Quick) { /* no completion satisfies it */ }
//
// # How
//
// [Analyze] converts the expression to conditions once for each size of sets (package read). Each iteration variable over
// devices gets a number, called its slot. Each conjunct becomes a condition:
//
//   - A part that refers to a single device is a leaf. CEL evaluates it for each device, and the values form a column.
//   - A part that compares two devices, such as d != o && d.row == o.row, is a predicate. Its verdicts are computed from
//     columns, or by CEL if columns are not enough, and stored as rows of bits. A verdict may also be an error.
//   - A part that refers to the set (quantifiers, counts, minima and maxima, sums and comparisons of them) has bounds over
//     all completions of a partial set.
//   - Any other part is open: it may have any value.
//
// An [Outcome] is the set of possible results: true, false, an error. A search cuts a branch only if every completion is surely
// false, without a possible error. CEL absorbs errors: "false && error" is false. The bounds do the same. Some CEL functions
// panic instead. A part with such a function is evaluated for each device first (propagate.Guard).
//
// [Bounds.Infeasible] also propagates the conditions to a fixpoint. It removes a device if every completion with it is false,
// and finds devices that all other completions contain.
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
// A rule rewrites a spelling of a condition to another spelling that is already supported. Add an entry in normal/rules.go, and
// an expression in the file of its family in testdata/rules. The transcript there lists the applied rules, their results, and
// the bounds (go test -run TestRules -rewrite). Rules apply only to conditions on the set that are neither leaves nor bindings
// (read/analyze.go). All spellings of an equality are handled in one place. Also add the expression to the constructs of
// constructs_test.go. The test there compares constructs with CEL on devices with missing or odd attributes, which the
// transcripts lack.
//
// # To add a kind of condition
//
// The comment of package condition describes the steps. Tests compare the bounds of random partial sets with all completions.
// Their expressions come from grammar.txt of internal/testing/randomexpr. Tests of required devices and of the status get
// expressions from the function counting in propagation_test.go. Add the new construct to both.
//
// # What it promises
//
// The results of Bound include the result of every completion. If Infeasible removes a device, every completion with the device
// is false. If Infeasible forces a device, all other completions contain it. A result that includes too much only costs time. A
// result that includes too little would be a bug.
package bound
