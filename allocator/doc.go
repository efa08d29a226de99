// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// package allocator finds devices for resource claims on one node, as
// [k8s.io/dynamic-resource-allocation/structured] does, and besides it knows
// CEL device constraints: one expression over the whole set of devices that
// requests get (KEP-5254).
//
//	a, err := allocator.NewAllocator(ctx, features, state, classes, slices, celCache)
//	results, err := a.Allocate(ctx, node, claims)
//
// An [Allocator] is made for one scheduling attempt and then asked for any
// number of nodes, concurrently. The package is pure: it has no clock, calls no
// API and starts no goroutines, so that schedulers and autoscalers can embed it.
//
// # The promise
//
// For claims without CEL constraints the answer is upstream's: the same devices,
// configuration and node selector, or none. For claims with CEL constraints the
// answer is that of an exhaustive search: the first set, in upstream's order,
// for which all constraints are satisfied, or none if there is no such set, or
// the first error that this search meets.
//
// # Tour
//
// Ten concepts, each in a file or in a package below internal:
//
//  1. A candidate is a device of a node at its place in the order in which devices are tried:
//     pools by driver and name, their slices by name, devices as they stand in the slice
//     (package inventory). Availability is what is left of the candidates beside allocations from
//     before and what the search took so far: devices, counters, shares of capacity (package
//     availability).
//  2. A request wants a number of candidates, or all that match; it is one of the alternatives of
//     a request of the claim (package requests, request.go). Its selectors judge one candidate,
//     when the search comes to it (package selection).
//  3. A constraint sees candidates come and go, as a stack (package constraint). One that compares
//     attributes refuses a device that can't be part of any solution with those already taken.
//     A CEL constraint (constraint_cel.go) is asked for complete sets only: that two devices are
//     not neighbours does not mean that a third won't connect them.
//  4. A definition is a CEL constraint or a preference of a claim or its classes, compiled
//     (definition.go, claim.go). A scheduler has claims prepared before (prepare.go).
//  5. A plan has what is prepared once for the claims of a pod: the read set, which is the
//     attributes that they read, and the content, which is what an answer depends on. On a node
//     it has the view, which is the devices as expressions with that read set see them, and what
//     is in use (plan.go, package view).
//  6. The cache has three kinds of entries: an analysis of a text, a table of a text and a view,
//     and an answer for a view, claims and devices in use (cache.go, answer.go).
//  7. The search (search.go) takes for each device that a request wants the first candidate that
//     is free, selected and not refused by a constraint, and goes on from there. If it gets stuck
//     it gives back the last one and takes the next instead. It yields solutions in their order
//     (result.go), and counts its work against budgets (budget.go). If there is no solution it says
//     why (reason.go).
//  8. A pruner (pruner.go) cuts for one CEL constraint. It has, for each number of devices taken,
//     the domain, which is what may come next or later, and what is forced. Package
//     cel/device/bound finds both out.
//  9. Looking ahead (lookahead.go, capacity_bound.go) cuts for all requests: a branch in which
//     fewer devices are left than wanted is not entered. Symmetry classes (symmetry.go) are of
//     candidates that look the same to everything that matters: one of them is tried.
//  10. An objective (objective.go) says which solution is taken: branch and bound goes from the
//     first one, the incumbent, to one with a greater value, until there is none. It is an
//     expression that returns an int, or fragmentation (keepwhole.go): how many of the sets of
//     devices that others may ask for (shape.go, package freesets) are lost.
//
// AllocateWithDetails makes the plan, or has it, and puts it on the node. If the answer is known
// that is all. Otherwise a search is set up: requests and constraints are read and checked in
// their order. Its first solution, or the reason why there is none, is remembered and returned.
//
// Within a request devices are taken in ascending order, so each set is tried once: 6 free
// devices have 15 sets of 4, not 360 sequences. A request with alternatives is met by the first
// of them with which everything after it can be met too. The first complete solution is the
// answer.
//
// # To add a kind of constraint
//
// Write it in package constraint, as a [constraint.Constraint], and have constraint.New make it.
// If it can tell how many devices of a list it would accept, it is a [constraint.Bounding] too,
// and lookahead uses that. What it may read without more ado is attributes, capacities and drivers:
// a view has nothing else. Which attributes it reads is said twice, by ReadByConstraints in
// plan.go, from the API, before there is a search, and by readByConstraint in symmetry.go,
// from the constraint; what they don't know may read any attribute. A constraint that looks at
// names, or at which devices are of one pool, must have claimContent say that nothing can be kept,
// or it gets the answers of other nodes.
//
// The random scenarios of random_test.go should have it; mind that they have one pool. Package
// scenario of allocator/conformance draws it, in the profiles that are not compared with upstream, and the
// brute force there has to know what it means. Test two nodes with one Cache that differ in what
// it reads.
//
// # To add an objective
//
// Write an [objective], as keepwhole.go does, and have newObjective make it. It is a constraint as well: of a complete set
// its Add notes the value in the goal and accepts only one above the floor. Before that it may refuse a device if no
// completion has a greater value, and only where the search says that it may cut. What its value depends on besides the
// claim goes into withPreferences (claim.go), or a cache gives the answer of another claim. Test it against looking at all
// sets ([WithExhaustiveSearch]), and with one Cache on two nodes that differ in what it reads: also in how the same slices
// form pools, if it looks at these.
//
// # Reading the expression
//
// The structure of an expression tells more than its verdict. Take the grid of
// KEP-5254, four devices each of which has two neighbours among them:
//
//	devices.all(d, devices.filter(o, d != o && adjacent(d, o)).size() >= 2)
//
// Package cel/device/bound asks CEL for the rows and columns of the devices, once for
// each device, and makes a table of adjacent(d, o) from them: for each device the bits of
// its neighbours. With devices S chosen, D their domain and r still to be found, the count
// for a device d is at least its neighbours in S and at most that plus the smaller of r
// and its neighbours in D. If it is at most one for any d in S, the conjunct is false for
// every completion, and so is the expression. From the same counts follow
//
//   - what is infeasible: a device of D that would have fewer than two neighbours in S
//     and D, and whatever is no neighbour of a d that needs all r that are left;
//   - what is forced: if a d in S has no more neighbours in D than it lacks, these are
//     in every completion. They count as chosen from then on, and more may follow.
//
// On an 8x8 mesh of free devices, rows of eight, this goes:
//
//   - {}: every device has two neighbours. Nothing is infeasible.
//   - {0}: devices are taken in ascending order, so of the neighbours of 0 only 1 and 8
//     come into question, and both are forced. 1 lacks one more, 2 or 9; 8 lacks one
//     more, 9 or 16. One device is left, so it is 9: the only completion is {0, 1, 8, 9}.
//   - {0, 1}, {0, 1, 8}, {0, 1, 8, 9}: there is nothing else to try. Of the complete set the
//     counts are exact, two for each device: it is true, whatever CEL would do to find out.
//
// Six steps and no evaluation of a set, out of 635,376. Reading an expression may only spare
// what is sure: sets that CEL would have refused, and the evaluation of one that it would
// have accepted. If one conjunct can't be read, or may fail, the set is evaluated, by CEL and
// as a whole, and had it been false, the search would have gone on with {1}. pruner.go says
// when a branch may be cut, and why the answer is still that of the exhaustive search.
//
// # Not doing it twice
//
// Nodes of one hardware type differ in names, in serial numbers and in what is in use. What was
// found out is kept in a [Cache] under everything that it depends on (cache.go). An allocator that
// was made for the next scheduling attempt finds it there. Devices that look the same to
// everything that matters are tried once (symmetry.go), and selectors are evaluated once for
// devices in a row that look the same to them.
//
// # Errors, and looking ahead
//
// What a device costs to find out is done as late as possible. Selectors are
// evaluated only for free devices that the search comes to; one that fails on a
// device at the end of the list harms nobody who is served from its beginning.
//
// When the search had to give something back it starts to look ahead. A branch is
// only cut where nothing remains to be evaluated, so that no error goes unnoticed.
//
// Taking a device pushes it on a stack and giving it back pops it; after that everything is
// exactly as it was.
package allocator
