// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package search finds the devices for the claims of a pod on one node. It yields solutions in upstream's order, and for claims
// with CEL constraints it yields those of an exhaustive search.
//
//  1. [New] reads the claims in their order: requests with their alternatives, and the constraints that cover them. The first
//     mistake is the error.
//  2. For each request of each claim the search tries the alternatives in their order. If all requests are met, the search has
//     a solution and yields it.
//  3. For an alternative the search takes devices one after the other, in ascending order: the first candidate that is free,
//     that the selectors select and that no constraint refuses.
//  4. If no candidate is left, the search gives back the last device and takes the next one in its place. If there is no device
//     to give back, it goes on with the next alternative, and then with the request before.
//  5. Before each step the search counts it against its budgets, and looks whether the call was cancelled.
//
// Four things cut branches, and each cuts only branches without a solution in which the search would have met no error:
//
//   - a constraint that compares attributes refuses devices;
//   - a pruner knows what the expression of a CEL constraint can still become (pruner.go);
//   - lookahead counts the devices that are left, once the search had to give one back (lookahead.go, capacity_bound.go);
//   - of symmetric devices one is tried (symmetry.go).
//
// The state is a stack: taking a device pushes it, giving it back pops it, and after that everything is as it was. A call of the
// search costs one step for each device that is looked for; [budget.Work] has the count.
package search
