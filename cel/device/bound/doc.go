// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bound decides early: it tells what an expression over "devices" can
// still become when a part of the set is chosen, without evaluating it.
//
//	analysis := bound.Analyze(expression, 4)
//	tables := analysis.Tabulate(ctx, devices)
//	if tables.Bound(partial) == bound.False { /* no completion satisfies it */ }
//
// # How
//
// The expression is read once ([Analyze]). What speaks of single devices only,
// like d.attributes[x].row or d != o && d.row == o.row, is tabulated: CEL evaluates
// it for each device, or for each pair when the pair is first asked for. So any
// function may stand there, and an entry may also be an error. What speaks of the
// set, quantifiers, counts, minima and maxima, sums and comparisons of them, has
// bounds over all completions of a partial set. Everything else is open: it may
// become anything.
//
// An [Outcome] is the set of results that are possible: true, false, an error. Only
// one that is surely false, for every completion and without an error in any of
// them, lets a search cut a branch. CEL absorbs errors: "false && error" is false,
// and so are the bounds here.
//
// # What it promises
//
// The possible results that Bound returns include the result of every completion.
// Saying too much is allowed, it only costs time; saying too little would be wrong.
package bound
