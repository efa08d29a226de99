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
// The search asks these questions, in this order. Each answer may cut a branch: the branch has no solution, and the search would
// meet no error in it.
//
// Before a request (Search.nextRequest):
//
//  1. isNotBetter: is the set of the objective complete without being better than the incumbent? Only searches for a preference
//     have an objective.
//  2. lookahead.restIsInfeasible: do this request and the requests after it lack devices? Lookahead starts after the first device
//     was given back (lookahead.go, capacity_bound.go).
//
// Before an alternative (Search.try):
//
//  3. Request.decide: does a CEL constraint exclude every set with this alternative? The first covered request begins a pruner
//     (pruner.begin). The pruner computes bounds of the expression for all completions of a partial set. If the alternative
//     completes the set, the constraint judges the set (CELConstraint.evaluate).
//
// Before a device (Search.nextDevice):
//
//  4. isNotBetter, again.
//  5. tooMany: would the claim get more devices than an allocation may hold?
//  6. lookahead.isInfeasible: do this request or the requests after it lack devices? A begun pruner already counts the devices,
//     so this question is skipped then (Request.isPruned).
//
// For each candidate (Search.takeAny and Search.take):
//
//  7. Request.next: did a begun pruner remove the device from its domain (pruner.next)?
//  8. failedClasses.has: has a symmetric device failed already (symmetry.go)?
//  9. isEligible: is the device free, do the selectors select it, and does it have the capacity?
//  10. Constraint.Add: does a constraint refuse the device? An [acceptance] comes first. A constraint that compares attributes
//     compares the device with the set. A CEL constraint looks for a completion of the set with the device (pruner.descend), and
//     judges the set if the device completes it.
//
// The state is a stack: taking a device pushes it, and giving it back pops it and restores the state before. A search costs one
// step for each device that it looks for. [budget.Work] counts the steps.
package search
