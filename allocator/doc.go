// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocator finds devices for resource claims on one node, like [k8s.io/dynamic-resource-allocation/structured]. In
// addition it supports CEL device constraints: a constraint is one expression over the whole set of devices that requests get
// (KEP-5254).
//
//	a, err := allocator.NewAllocator(ctx, features, state, classes, slices, celCache)
//	results, err := a.Allocate(ctx, node, claims)
//
// An [Allocator] is made for one scheduling attempt and then used for any number of nodes, concurrently. The package has no
// clock, calls no API and starts no goroutines, so that schedulers and autoscalers can embed it.
//
// # The promise
//
// For claims without CEL constraints the answer equals upstream's: the same devices, configuration and node selector, or a
// refusal. For claims with CEL constraints the answer equals that of an exhaustive search. That is the first set in upstream's
// order that satisfies all constraints, a refusal if no set does, or the first error that the search meets.
//
// # Tour
//
// Below this package, each package imports only packages earlier in this list:
//
//   - A candidate is a device of a node, numbered in the order of the search: pools by driver and name, their slices by name,
//     devices as in the slice (package inventory). Package availability tracks how much of each candidate is left by former
//     allocations and by the current search: devices, counters, shares of capacity.
//   - A request asks for a number of candidates, or for all that match. It is a request of the claim or one of its alternatives
//     (package requests). Its selectors judge a candidate when the search reaches it (package selection).
//   - A constraint gets each candidate that the search takes or gives back, as a stack (package constraint). A constraint that
//     compares attributes refuses a device that belongs to no solution with the devices already taken.
//   - Package budget limits the search, package shape describes sets that other claims may ask for, and package answer holds the
//     result.
//   - A definition is a compiled CEL constraint or preference of a claim or its classes (package definition).
//   - A plan is made once for the claims of a pod. It holds their read set, which is the attributes that they read, and their
//     content, which is everything that an answer depends on. On a node the plan has a view: for each device, the properties
//     that expressions with that read set can read. Package plan also has the cache. It stores the analysis of an expression,
//     the tables of an expression and a view, and answers.
//   - The search yields solutions in order (package search). A CEL constraint judges only complete sets: two devices that are not
//     neighbours may become connected by a third. A pruner cuts branches for the constraint: package cel/device/bound finds
//     devices that may come next, and devices that must.
//   - An objective chooses among solutions (package objective): branch and bound goes from the first solution, the incumbent, to
//     solutions with greater values, until no greater value exists.
//
// AllocateWithDetails makes or reuses the plan and applies it to the node. If the cache has the answer, the call ends there.
// Otherwise it sets up a search, which reads and checks requests and constraints in order. The first solution, or the reason why
// there is no solution, is cached and returned.
//
// Within a request devices are taken in ascending order, so each set is tried once: 6 free devices have 15 sets of 4, not 360
// sequences. The search chooses the first alternative of a request that leads to a solution. The first complete solution is the
// answer.
//
// # To add a kind of constraint
//
// Write it in package constraint, as a [constraint.Constraint], and have constraint.New make it. If it can bound the number of
// devices of a list that it would accept, implement [constraint.Bounding] too, and lookahead uses the bound. A constraint may
// read attributes, capacities and drivers, because views have these. Add the attributes to Planner.readByDefinitions of package
// plan; a constraint that is missing there counts as reading all attributes. If the constraint reads names or pools of devices,
// ClaimContent of package definition must return false. Otherwise the constraint gets cached answers of other nodes.
//
// Add it to the random scenarios of random_test.go, which have only one pool. Package scenario of allocator/conformance draws it,
// in the profiles that are not compared with upstream, and the brute force there must implement it. Test two nodes with one Cache
// that differ in everything the constraint reads.
//
// # To add an objective
//
// Write a function of package objective, like keepwhole.go, and have newPolicyObjective make it. It is a constraint as well: for
// a complete set its Add stores the value in the goal and accepts only values above the floor. For a partial set it may refuse a
// device if no completion has a greater value, but only if the search permits cuts. Add everything besides the claim that the
// value depends on to withPreferences of package plan; otherwise the cache returns answers of other claims. Test it against all
// sets ([WithExhaustiveSearch]), and with one Cache on two nodes that differ in everything it reads, including the pools of their
// slices.
//
// # Reading the expression
//
// The structure of an expression gives more information than its verdict. Take the grid of KEP-5254: four devices, each with two
// neighbours among them:
//
//	devices.all(d, devices.filter(o, d != o && adjacent(d, o)).size() >= 2)
//
// Package cel/device/bound asks CEL for the rows and columns of the devices, once for each device. From them it makes a table of
// adjacent(d, o): a set of bits with the neighbours of each device. Let S be the chosen devices, D their domain and r the number
// of devices still to find. The count for a device d is at least the number of its neighbours in S. It exceeds that by at most
// the smaller of r and its neighbours in D. If this upper bound is below two for any d in S, the conjunct is false for every
// completion, and so is the expression. The same counts give
//
//   - infeasible devices: a device of D with fewer than two neighbours in S and D. If a d needs all r remaining devices, a device
//     that is no neighbour of it is infeasible, too;
//   - forced devices: if a d in S has no more neighbours in D than it lacks, every completion contains these. They count as
//     chosen from then on, and more may follow.
//
// On an 8x8 mesh of free devices, in rows of eight, the search takes these steps:
//
//   - {}: every device has two neighbours. Nothing is infeasible.
//   - {0}: devices are taken in ascending order, so 1 and 8 are the only possible neighbours of 0, and both are forced. 1 lacks
//     one more neighbour, 2 or 9; 8 lacks one more, 9 or 16. One device remains to be found, so it is 9: the only completion is
//     {0, 1, 8, 9}.
//   - {0, 1}, {0, 1, 8}, {0, 1, 8, 9}: no other choice exists. The counts of the complete set are exact, two for each device, so
//     the expression is true without an evaluation.
//
// The search takes six steps and evaluates none of the 635,376 sets. It may skip only certain work: sets that CEL would have
// refused, and the evaluation of a set that CEL would have accepted. If a conjunct can't be read or may fail, CEL evaluates the
// whole expression for the set. If the result is false, the search continues with {1}. pruner.go of package search says when a
// branch may be cut, and why the answer still equals that of the exhaustive search.
//
// # Errors, and looking ahead
//
// Selectors are evaluated as late as possible: only for free devices that the search reaches. A selector that fails for a device
// at the end of the list does no harm to claims that get devices from its beginning.
//
// After the search gives back its first device, it looks ahead. It cuts a branch only if nothing in the branch remains to be
// evaluated, so that it misses no error.
//
// Taking a device pushes it on a stack. Giving it back pops it and restores the exact state before.
package allocator
