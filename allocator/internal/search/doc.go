// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package search finds the devices for the claims of a pod on one node. It yields solutions in upstream's order. For claims
// with CEL constraints, it yields the same solutions as an exhaustive search.
//
//  1. [New] reads the claims in order: requests with their alternatives, and the constraints that cover them. It returns the
//     first error in the claims.
//  2. For each request of each claim, the search tries the alternatives in order. When all requests have their devices, the
//     search yields the solution.
//  3. For an alternative, the search takes devices one after the other, in ascending order. It takes the first candidate that
//     is free, selected by the selectors, and accepted by all constraints.
//  4. If no candidate is left, the search gives back the last device and takes the next candidate instead. If there is no
//     device to give back, the search continues with the next alternative, and then with the previous request.
//  5. The search counts each step against the budgets. At each step it checks whether the call was cancelled.
//
// The search makes the following checks, in this order. Each check may cut a branch, because the branch contains no solution
// and the search would meet no error in it.
//
// Before a request (Search.nextRequest):
//
//  1. isNotBetter: is the set of the objective complete without being better than the incumbent? Only searches for a preference
//     have an objective.
//  2. lookahead.restIsInfeasible: do this request and the requests after it lack devices? Lookahead starts when the search
//     gives back a device for the first time (lookahead.go, capacity_bound.go).
//
// Before an alternative (Search.try):
//
//  3. Request.decide: does a CEL constraint exclude every set with this alternative? The first covered request begins a pruner
//     (pruner.begin). The pruner computes bounds of the expression for all completions of a partial set. If the set is complete
//     with this alternative, the constraint evaluates the set (CELConstraint.evaluate).
//
// Before a device (Search.nextDevice):
//
//  4. isNotBetter, again.
//  5. tooMany: would the claim get more devices than an allocation may contain?
//  6. lookahead.isInfeasible: do this request or the requests after it lack devices? If a pruner that covers the request is
//     active, it already counts the devices, and this check is skipped (Request.isPruned).
//
// For each candidate (Search.takeAny and Search.take):
//
//  7. Request.next: did an active pruner remove the device from its domain (pruner.next)?
//  8. failedClasses.has: has the search already failed with a symmetric device (symmetry.go)?
//  9. isEligible: is the device free, do the selectors select it, and does it have the capacity?
//  10. Constraint.Add: does a constraint refuse the device? An [acceptance] comes first. A constraint that compares attributes
//     compares the device with the set. A CEL constraint looks for a completion of the set with the device (pruner.descend). If
//     the device completes the set, the constraint evaluates the set.
//
// The state of the search is a stack. Taking a device pushes it, and giving it back pops it and restores the state before. The
// search counts one step for each device that it looks for ([budget.Work]).
package search
