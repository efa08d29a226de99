// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package propagate removes devices from a partial set if no completion with them can satisfy a condition.
//
// A [State] is a partial set: chosen devices, possible devices, and the number left to choose. A [Condition] returns the results
// that are still possible in a state. Some conditions also implement propagator, which is cheaper than trying each device.
// Infeasible propagates the conjuncts of a [Problem] to a fixpoint (fixpoint.go).
//
// [Tables] hold the results of CEL for single devices ([Leaf]) and pairs ([Predicate]). An entry is filled when it is first read
// (evaluate.go, predicate.go). Searches share the tables.
//
// A bound includes the result of every completion. Every completion with a removed device is false (fixpoint.go).
package propagate
