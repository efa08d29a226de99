// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition has the conditions and numbers that represent an expression over devices.
//
// Connectives, comparisons, lists and quantifiers follow CEL (logic.go, comparison.go, list.go, quantifier.go, aggregate.go). A
// [cardinality] counts devices. Global constraints propagate over many devices at once. Each has a file: bounding boxes, graphs,
// matchings, segments, stretches, occurrences, sums, spacings and patterns.
//
// A [Builder] and the constructors of quantifiers choose the condition that propagates best (post.go, join.go, linear.go). A
// condition may have a simpler form under a premise. Then [assuming] holds both forms.
//
// # To add a kind of condition
//
// A condition that can't be expressed with others is a [propagate.Condition] in a file of its own. It has a bound, and perhaps a
// propagator that is better than probing and a negation ([negator]). box.go is the model. Combinations of other conditions are
// recognized by their constructors, such as [NewForAll], so negations must call these. A test must show that the construct is
// recognized. Other tests don't notice, because bounds are sound without it.
package condition
