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
// A condition that can't be built from other conditions is a [propagate.Condition] in a file of its own. It needs a bound. It
// may also have a propagator that is better than probing, and a negation ([negator]). box.go is the model. The constructors of
// quantifiers, such as [NewForAll], recognize combinations of other conditions, so a negation must call these constructors. A
// new test must show that the construct is recognized: other tests pass without it, because bounds are sound either way.
package condition
