// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package propagate removes a device from a partial set if no completion with this device can satisfy a condition.
//
// A [State] is a partial set: chosen devices, possible devices, and the number left to choose. A completion adds this number of
// possible devices. A [Condition] computes which results are still possible for a state. Some conditions also have a
// propagator, which is cheaper than trying each device. Infeasible propagates the conjuncts of a [Problem] to a fixpoint
// (fixpoint.go).
//
// [Tables] store the results of CEL for single devices ([Leaf]) and pairs ([Predicate]). An entry is computed when it is first
// read (evaluate.go, predicate.go). All searches share the tables.
//
// Two promises hold. A bound includes the result of every completion. If a device is removed, every completion with it is
// false.
package propagate
