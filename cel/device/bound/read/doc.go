// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package read turns an expression over devices into conditions for propagation.
//
// [Conjuncts] splits the expression at its top-level conjunctions and converts each conjunct for sets of one size:
//
//  1. Package normal rewrites the conjunct into its normal form.
//  2. A part that refers only to one or two devices becomes a predicate or a leaf (local.go). CEL evaluates the leaves.
//  3. Any other part is converted by its operator (grammar.go, analyze.go) or its macro (list.go, loop.go). A
//     condition.Builder chooses the condition.
//  4. An unsupported part is open: it may have any value.
//
// An expression for a device at a fixed position, such as devices[0], becomes a variable (member.go). A part that may abort the
// evaluation of the whole expression needs a guard (guard.go).
package read
