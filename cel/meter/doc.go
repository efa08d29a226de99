// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package meter evaluates untrusted, checked CEL expressions. It counts CEL cost units as CEL does, and also limits time and
// memory, which CEL does not limit.
//
//	planner, err := meter.NewPlanner(env, meter.Config{Estimator: &library.CostEstimator{}})
//	program, err := planner.Plan(checked, true)
//	value, expense, err := program.Eval(ctx, input, meter.Limits{Cost: 1_000_000, Bytes: 2 << 20})
//
// This package uses cel-go's interpreter, values and functions, but its own accounting, for two reasons. CEL's cost tracker
// charges a call only after it was made, so one call may use up all memory before anything is charged. And the tracker searches
// a stack for operands, which takes longer for longer lists: lists.range(160000).all(i, i >= 0), which costs 960,012 units,
// takes minutes with the tracker and a tenth of a second without it.
//
// In this package each step of the plan charges for itself. A call has these steps:
//
//  1. Evaluate the operands.
//  2. Compute the time and memory of the call from the sizes of the operands ([Load]).
//  3. End the evaluation if the call would exceed a limit.
//  4. Make the call.
//
// Three limits end an evaluation:
//
//   - cost: the units that CEL charges, or one unit for each 250 ns of calls by [LoadOf], whichever is more
//     ([*LimitError]). CEL's units equal the count of cel-go's tracker, as a test checks.
//   - memory: the bytes of the texts, lists and maps that functions create ([*LimitError]).
//   - context: it is checked in every loop and before every long call ([*InterruptedError]).
//
// If no limit ends the evaluation, the result is the same as cel-go's: the same value, error and position of the error.
package meter
