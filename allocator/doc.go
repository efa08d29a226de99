// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocator finds devices for resource claims on one node, like [k8s.io/dynamic-resource-allocation/structured]. In
// addition it supports CEL device constraints (KEP-5254). Such a constraint is an expression over all devices of its requests.
//
//	a, err := allocator.NewAllocator(ctx, features, state, classes, slices, celCache)
//	results, err := a.Allocate(ctx, node, claims)
//
// An [Allocator] is made for one scheduling attempt and then used for any number of nodes, concurrently. The package uses no
// clock, calls no API and starts no goroutines, so that schedulers and autoscalers can embed it.
//
// # The promise
//
// For claims without CEL constraints, the result equals upstream's result: the same devices, configuration and node selector,
// or a refusal. For claims with CEL constraints, it equals the result of an exhaustive search. This is the first set in
// upstream's order that satisfies all constraints, a refusal if no set does, or the first error that the search meets.
//
// # Tour
//
// Below this package, each package imports only packages earlier in this list:
//
//   - A candidate is a device of a node. Candidates are numbered in the order of the search: pools by driver and name, the
//     slices of a pool by name, and devices as in the slice (package inventory). Package availability tracks how much of each
//     candidate is available after earlier allocations and the current search: devices, counters, shares of capacity.
//   - A request asks for a number of candidates, or for all matching candidates. It is a request of the claim or one of its
//     alternatives (package requests). Its selectors are evaluated for a candidate when the search reaches the candidate
//     (package selection).
//   - A constraint gets each candidate that the search takes or gives back (package constraint). A constraint that compares
//     attributes refuses a device if no solution contains it together with the devices already taken.
//   - Package budget limits the search, package shape describes sets that other claims may ask for, and package answer holds
//     the result.
//   - A definition is a compiled CEL constraint or preference of a claim or its classes (package definition).
//   - A plan is made once for the claims of a pod (package plan). It holds their read set, which is the set of attributes that
//     they read, and their content, which is everything in the claims that the result depends on. On a node the plan has a
//     view: for each device, the properties that expressions with this read set can read. Package plan also has the cache. The
//     cache stores analyses of expressions, tables of an expression for a view, and results.
//   - The search yields solutions in order (package search). A CEL constraint judges only complete sets, because a third device
//     may connect two devices that are not neighbors. A pruner cuts branches for the constraint: package cel/device/bound finds
//     the devices that may come next, and the devices that must.
//   - An objective chooses among solutions by branch and bound (package objective). It goes from the first solution, the
//     incumbent, to solutions with greater values, until no greater value exists.
//
// AllocateWithDetails makes or reuses the plan and applies it to the node. If the cache has the result, the call returns it.
// Otherwise the call sets up a search, which reads and checks requests and constraints in order. The first solution, or the
// reason why there is no solution, is cached and returned.
//
// The search takes the devices of a request in ascending order, so it tries each set once: 6 free devices have 15 sets of 4
// devices, but 360 sequences. The search chooses the first alternative of a request that leads to a solution. Without
// preferences, the first complete solution is the result.
//
// # To add a kind of constraint
//
// Implement [constraint.Constraint] in package constraint, and make constraint.New return the new type. If the constraint can
// bound how many of some devices it would accept, implement [constraint.Bounding] too, so that lookahead uses the bound. A
// constraint may read attributes, capacities and drivers, because views contain them. Add the attributes to
// Planner.readByDefinitions in package plan. A constraint that is missing there counts as reading all attributes. If the
// constraint reads names or pools of devices, ClaimContent in package definition must return false. Otherwise the constraint
// gets cached results of other nodes.
//
// Add the constraint to the random scenarios of random_test.go, which have only one pool. Make package scenario of
// allocator/conformance draw it in the profiles that are not compared with upstream, and implement it in package bruteforce.
// Test two nodes with one Cache that differ in everything that the constraint reads.
//
// # To add an objective
//
// Write an objective function in package objective, like keepwhole.go, and make newPolicyObjective return it. It is also a
// constraint: for a complete set, Add stores the value in the goal and accepts only values above the floor. For a partial set,
// Add may refuse a device if no completion has a greater value and the search permits cuts. Add everything besides the claim
// that the value depends on to withPreferences in package plan. Otherwise the cache returns results of other claims. Test the
// objective against all sets ([WithExhaustiveSearch]), and with one Cache on two nodes that differ in everything that the
// objective reads, including the pools of their slices.
//
// # Reading the expression
//
// The structure of an expression gives more information than its value. For example, the grid of KEP-5254 has four devices, and
// each device has two neighbors among them:
//
//	devices.all(d, devices.filter(o, d != o && adjacent(d, o)).size() >= 2)
//
// Package cel/device/bound evaluates the rows and columns of the devices with CEL, once for each device. From them it makes a
// table of adjacent(d, o): a bitset with the neighbors of each device. Let S be the chosen devices, D their domain and r the
// number of devices still to find. For a device d, let s be the number of its neighbors in S, and t the number of its neighbors
// in D. Every completion contains at least s and at most s + min(r, t) neighbors of d. If this upper bound is below two for
// some d in S, the conjunct is false for every completion, and so is the expression. The same counts show two kinds of devices:
//
//   - Infeasible devices belong to no satisfactory completion. A device of D with fewer than two neighbors in S and D is
//     infeasible. If some d in S needs all r remaining devices, every device that is not a neighbor of d is infeasible, too.
//   - Forced devices belong to every satisfactory completion. If some d in S needs all its neighbors in D, these neighbors are
//     forced. They then count as chosen, which may force more devices.
//
// On an 8x8 mesh of free devices, in rows of eight, the search takes these steps:
//
//   - {}: every device has two neighbors. No device is infeasible.
//   - {0}: devices are taken in ascending order, so 1 and 8 are the only possible neighbors of 0, and both are forced. Device 1
//     needs one more neighbor, 2 or 9. Device 8 needs one more neighbor, 9 or 16. Only one device remains to be found, so it is
//     9: the only completion is {0, 1, 8, 9}.
//   - {0, 1}, {0, 1, 8}, {0, 1, 8, 9}: no other choice exists. The counts of the complete set are exact, two for each device,
//     so the bounds prove the expression without an evaluation.
//
// The search takes six steps and evaluates none of the 635,376 sets. It may skip only sets that CEL would refuse, and
// evaluations of sets that CEL would accept. If a conjunct can't be analyzed or may fail, CEL evaluates the whole expression
// for the set. If the result is false, the search continues with {1}. pruner.go in package search describes when a branch may
// be cut, and why the result still equals the result of the exhaustive search.
//
// # Errors and lookahead
//
// Selectors are evaluated as late as possible: only for free devices that the search reaches. So a selector that fails for a
// device at the end of the list does not affect claims that get devices from its beginning.
//
// After the search has given back a device for the first time, it looks ahead. It cuts a branch only if the branch evaluates
// nothing more, so that the cut hides no error.
//
// Taking a device pushes it on a stack. Giving the device back pops it and restores the exact state before.
package allocator
