// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bound decides early: it tells what an expression over "devices" can
// still become when a part of the set is chosen, without evaluating it.
//
//	analysis := bound.Analyze(expression, 4)
//	tables := analysis.Tabulate(devices)    // shared by any number of searches
//	bounds := tables.NewBounds(ctx, budget) // for one search
//	if bounds.Infeasible(partial, bound.Quick) { /* no completion satisfies it */ }
//
// # How
//
// [Analyze] reads the expression once for sets of one size (package read). Each conjunct becomes a condition:
//
//   - A part that speaks of a single device is a leaf. CEL evaluates it for each device, and the results are a column.
//   - A part that compares two devices, d != o && d.row == o.row, is a predicate. It is computed from columns, or by CEL
//     where they won't do, and kept as rows of bits. So any function may stand there, and an entry may also be an error.
//   - A part that speaks of the set (quantifiers, counts, minima and maxima, sums and comparisons of them) has bounds over
//     all completions of a partial set.
//   - Any other part is open: it may become anything.
//
// An [Outcome] is the set of results that are possible: true, false, an error. A search cuts a branch only if the outcome is
// surely false, for every completion and without an error in any of them. CEL absorbs errors: "false && error" is false,
// and so are the bounds here. Some functions panic instead. Their part is tried with each device before anything is said
// (propagate.Guard).
//
// [Bounds.Infeasible] also propagates the conditions to a fixpoint: it removes devices that are in no completion which is not
// false, and finds devices that are in all of them.
//
// # Where to read
//
// The packages stand in this order, and each imports only packages above it:
//
//	outcome    what bools and ints may still become
//	key        values that can be compared in Go
//	normal     one spelling for what can be written in several ways: rules
//	propagate  partial sets, tables of what CEL says, and the fixpoint
//	condition  conditions, numbers and global constraints
//	read       expressions into conditions
//	bound      this package: what a search calls
//
// # To add a rule
//
// Another way to write what is understood is a rule: normal/rules.go, and an expression in the file
// of its family in testdata/rules, where a transcript says what was applied, what it wrote and
// what the bounds are then (go test -run TestRules -rewrite). Rules are asked where a condition on
// the set is neither a leaf nor a binding (read/analyze.go). An equality is read in one place,
// whichever way it is written. Put the expression among the constructs of
// constructs_test.go, too: they are compared with CEL on devices that lack attributes or have
// odd ones, which those of the transcripts don't.
//
// # To add a kind of condition
//
// The comment of package condition says how. What a condition says of random partial sets is compared with all completions.
// The texts come from grammar.txt of internal/testing/randomexpr, for required devices and for the status from
// counting in propagation_test.go: the new construct has to be added there.
//
// # What it promises
//
// The possible results that Bound returns include the result of every completion. What
// Infeasible removes is in completions only that are false, and what it finds forced is
// in all that are not. Saying too much is allowed, it only costs time; saying too little
// would be wrong.
package bound
