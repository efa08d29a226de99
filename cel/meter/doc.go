// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package meter evaluates checked CEL expressions that nobody trusts. It counts what CEL
// counts, in CEL cost units, and it bounds what CEL does not bound: time and memory.
//
//	planner, err := meter.NewPlanner(env, meter.Config{Estimator: &library.CostEstimator{}})
//	program, err := planner.Plan(checked)
//	value, expense, err := program.Eval(ctx, input, meter.Limits{Cost: 1_000_000, Bytes: 2 << 20})
//
// The interpreter is cel-go's, with its values and its functions. What differs is who
// looks on. CEL's own cost tracker is told of a call after it was made, so that one call
// may take all memory there is before anything is charged, and it looks for operands on a
// stack, which takes longer the longer a list is: lists.range(160000).all(i, i >= 0) costs
// 960,012 and takes minutes with it, and a tenth of a second without. Here each step of the
// plan charges for itself: a call evaluates its operands, finds out from their sizes how long it will take
// and how much it will make ([Load]), is stopped if that is too much, and is made only
// then. Three things end an evaluation:
//
//   - its cost: what CEL charges, or a unit for each 250 ns that its calls take by
//     [LoadOf], whichever is more ([*LimitError]). The former counts exactly what cel-go's
//     tracker counts; a test compares them.
//   - its memory: the bytes of the texts, lists and maps that functions make ([*LimitError]).
//   - its context, which is looked at during every loop and before every long call.
//
// A result that does not end the evaluation is the one that cel-go has: same value, same
// error, same place of the error.
package meter
