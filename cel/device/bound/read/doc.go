// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package read turns an expression over devices into conditions that can be propagated.
//
// [Conjuncts] splits the expression at its top-level conjunctions and reads each part for sets of one size:
//
//  1. The part is brought into its normal form (package normal).
//  2. A part that speaks of one or two devices only becomes a predicate or a leaf (local.go). CEL evaluates the leaves.
//  3. Any other part is read by its operator (grammar.go, analyze.go) or its macro (list.go, loop.go), and becomes a
//     condition that a condition.Builder chooses.
//  4. A part that nothing recognizes is open: it may become anything.
//
// A device that an expression names by its place, as in devices[0], becomes a variable (member.go). Parts that may end the
// evaluation of the whole expression need a guard (guard.go).
package read
