// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package read turns an expression over devices into conditions for propagation.
//
// [Conjuncts] splits the expression at its top-level conjunctions and reads each part for sets of one size:
//
//  1. The part is rewritten into its normal form (package normal).
//  2. A part that refers only to one or two devices becomes a predicate or a leaf (local.go). CEL evaluates the leaves.
//  3. Any other part is read by its operator (grammar.go, analyze.go) or its macro (list.go, loop.go). A condition.Builder
//     chooses the condition.
//  4. A part that is not recognized is open: it may have any result.
//
// A device with a fixed position, as in devices[0], becomes a variable (member.go). A part that may end the evaluation of the
// whole expression needs a guard (guard.go).
package read
