// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package search finds the devices for the claims of a pod on one node. It yields solutions in upstream's order. Claims with CEL
// constraints get the same solutions as in an exhaustive search.
//
//  1. [New] reads the claims in their order: requests with their alternatives, and the constraints that cover them. The first
//     mistake is the error.
//  2. For each request of each claim the search tries the alternatives in their order. If all requests are met, the search has
//     a solution and yields it.
//  3. For an alternative the search takes devices one after the other, in ascending order: the first candidate that is free,
//     that the selectors select and that no constraint refuses.
//  4. If no candidate is left, the search gives back the last device and takes the next candidate instead. If there is no device
//     to give back, the search continues with the next alternative, and then with the previous request.
//  5. Each step is counted against the budgets and checks whether the call was cancelled.
//
// Four mechanisms cut branches. They cut only branches without a solution where the search would also meet no error:
//
//   - a constraint that compares attributes refuses devices;
//   - a pruner computes bounds of the expression of a CEL constraint for all completions of a partial set (pruner.go);
//   - lookahead counts the devices left, once the search has given one back (lookahead.go, capacity_bound.go);
//   - only one of several symmetric devices is tried (symmetry.go).
//
// The state is a stack: taking a device pushes it, and giving it back pops it and restores the state before. A search costs one
// step for each device that it looks for. [budget.Work] counts the steps.
package search
