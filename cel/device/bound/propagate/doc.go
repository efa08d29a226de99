// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package propagate removes devices from a partial set that are in no completion for which a condition is true.
//
// A [State] is a partial set: devices that are chosen, devices that are possible, and how many are left to choose. A
// [Condition] tells for a state which results are still possible. A condition that knows better than to try each device is a
// Propagator. Infeasible propagates the conjuncts of a [Problem] to a fixpoint (fixpoint.go).
//
// [Tables] have what CEL says of single devices ([Leaf]) and of pairs ([Predicate]). They are filled when they are first
// asked for (evaluate.go, predicate.go), and any number of searches share them.
//
// A bound includes the result of every completion. A removed device is only in completions that are false (fixpoint.go).
package propagate
