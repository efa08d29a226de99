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
// The expression is read once ([Analyze]), for sets of one size: what is constant then is
// folded, and the conjuncts are taken one by one. What speaks of single devices only is a
// leaf ([leaf]): CEL evaluates it for each device, and the results are a column. What
// compares two devices, d != o && d.row == o.row, is a predicate ([predicate]): it is
// computed from columns, or by CEL where they won't do, and kept as rows of bits. So any
// function may stand there, and an entry may also be an error. What speaks of the set,
// quantifiers, counts, minima and maxima, sums and comparisons of them, has bounds over
// all completions of a partial set. Everything else is open: it may become anything.
//
// Much can be written in several ways, and is read in one. What cel.bind gives a name to
// takes the place of the name. What is said of values in a list is said of the devices
// that have them, memberships and functions on sets become quantifiers, and quantifiers
// over constants conjunctions. devices[0] is some device of the set, one of those that may be
// the first ([member]).
// All of that is written down as an expression again ([normalizer]), so that CEL can be asked
// for its leaves.
//
// An [Outcome] is the set of results that are possible: true, false, an error. Only
// one that is surely false, for every completion and without an error in any of
// them, lets a search cut a branch. CEL absorbs errors: "false && error" is false,
// and so are the bounds here. Some functions panic instead, and what they stand in is
// tried with each device before anything is said ([guard]).
//
// [Bounds.Infeasible] does more than ask for the bound: it removes devices that are in no
// completion which is not false, and finds those that are in all of them. Counting rows
// ([cardinality], [generalCardinality]) and looking for the places of bounding boxes ([box]) does that
// for the constructs that come up often, and so do the functions of package library: reach in a graph
// ([OnGraph]), couples ([matching]). For the rest each device of the domain is tried. What propagating a
// condition came to is a [status].
//
// # Where to read
//
// analyze.go begins, with grammar.go: the operators are read in one place, for conditions on the
// set ([analyzer]) and on single devices ([local]). rules.go, rewrite.go and inline.go write parts in
// their normal form before; guard.go and absorption.go look after what may abort. node.go says what a
// condition is. quantifier.go, cardinality.go, pattern.go, aggregate.go and nvalue.go are conditions and
// numbers; box.go, connected.go, clique.go, circuit.go and matching.go are global constraints, used for
// the functions over sets and for plain CEL that says the same. stretches.go, occurrences.go, spacing.go, sum.go
// and demands.go are global constraints for plain CEL: linear.go, linear_all.go and extreme.go recognize
// them. What is simpler as long as nothing fails or overflows is in assuming.go. tables.go asks CEL. bound.go and
// propagate.go are what a search calls: conditions are propagated to a fixpoint.
//
// # To add a rule
//
// Another way to write what is understood is a [rule]: rules.go, and an expression in the file
// of its family in testdata/rules, where a transcript says what was applied, what it wrote and
// what the bounds are then (go test -run TestRules -rewrite). Rules are asked where a condition on
// the set is neither a leaf nor a binding (analyzer.condition); what compares is asked as ==,
// whichever way it is written (analyzer.comparison). Put the expression among the constructs of
// constructs_test.go, too: they are compared with CEL on devices that lack attributes or have
// odd ones, which those of the transcripts don't.
//
// # To add a kind of condition
//
// What can't be written with others is a [condition], and a file: its bound, and, if it knows
// better than trying each device, how it is propagated ([propagator]) and its negation
// ([negator]). box.go is the model. Functions are recognized by the analyzer; what consists of
// other conditions, by their constructors, such as NewForAll: negations must call these. A test
// has to show that the construct is recognized, because what is not is no less sound.
//
// What it says of random partial sets is compared with all completions. The texts come from
// grammar.txt of internal/testing/randomexpr, for required devices and for the status from
// counting in propagation_test.go: what draws the construct has to be added there.
//
// # What it promises
//
// The possible results that Bound returns include the result of every completion. What
// Infeasible removes is in completions only that are false, and what it finds forced is
// in all that are not. Saying too much is allowed, it only costs time; saying too little
// would be wrong.
package bound
