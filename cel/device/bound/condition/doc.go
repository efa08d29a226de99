// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition has the conditions and numbers that an expression over devices is read as.
//
// Connectives, comparisons, lists and quantifiers follow CEL (logic.go, comparison.go, list.go, quantifier.go, aggregate.go).
// Counting devices is a [cardinality]. Global constraints propagate over many devices at once, a file each: bounding boxes,
// graphs, matchings, stretches, occurrences, sums, spacings and patterns.
//
// A [Builder] chooses the condition that is propagated best for what was read (posting.go, join.go, linear.go), and the
// constructors of quantifiers do so too. Conditions that are simpler under a premise keep the general one beside it
// ([assuming]).
//
// # To add a kind of condition
//
// What can't be written with others is a [propagate.Condition], and a file: its bound, and, if it knows better than trying
// each device, how it is propagated and its negation ([negator]). box.go is the model. What consists of other conditions is
// recognized by their constructors, such as [NewForAll]: negations must call these. A test has to show that the construct
// is recognized, because what is not is no less sound.
package condition
