// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocator finds devices for resource claims on one node, as
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
// Below this package, each package imports only those that come before it:
//
//   - A candidate is a device of a node at its place in the order in which devices are tried: pools by driver and name, their
//     slices by name, devices as in the slice (package inventory). Package availability knows what is left of the candidates
//     beside former allocations and what the search took so far: devices, counters, shares of capacity.
//   - A request wants a number of candidates, or all that match; it is one of the alternatives of a request of the claim
//     (package requests). Its selectors judge one candidate, when the search comes to it (package selection).
//   - A constraint sees candidates come and go, as a stack (package constraint). If it compares attributes, it refuses a device
//     that can't be part of any solution with the devices already taken.
//   - Packages budget, shape and answer limit a search, say what other claims may ask for, and have the outcome.
//   - A definition is a CEL constraint or a preference of a claim or its classes, compiled (package definition).
//   - A plan is made once for the claims of a pod: the read set, which is the attributes that they read, and the content, which
//     is all that an answer depends on. On a node it has the view, which is the devices as expressions with that read set see
//     them. Package plan has the cache, too: analyses of texts, tables of a text and a view, and answers.
//   - The search yields solutions in their order (package search). A CEL constraint is asked for complete sets only: that two
//     devices are not neighbours does not mean that a third won't connect them. A pruner cuts for it: package cel/device/bound
//     finds out which devices may come next, and which are forced.
//   - An objective says which solution is taken (package objective): branch and bound goes from the first solution, the
//     incumbent, to one with a greater value, until there is none.
//
// AllocateWithDetails makes the plan, or has it, and puts it on the node. If the answer is known that is all. Otherwise a search
// is set up: requests and constraints are read and checked in their order. Its first solution, or the reason why there is none, is
// remembered and returned.
//
// Within a request devices are taken in ascending order, so each set is tried once: 6 free devices have 15 sets of 4, not 360
// sequences. The first alternative of a request is taken with which everything after it can be met. The first complete solution
// is the answer.
//
// # To add a kind of constraint
//
// Write it in package constraint, as a [constraint.Constraint], and have constraint.New make it. If it can tell how many devices
// of a list it would accept, it is a [constraint.Bounding] too, and lookahead uses that. A view has attributes, capacities and
// drivers, so a constraint may read these. The attributes that it reads belong into Planner.readByDefinitions of package plan; a
// constraint that is unknown there may read any attribute. If it looks at names, or at which devices are of one pool,
// ClaimContent of package definition must say that nothing can be kept, or it gets the answers of other nodes.
//
// The random scenarios of random_test.go should have it; mind that they have one pool. Package scenario of
// allocator/conformance draws it, in the profiles that are not compared with upstream, and the brute force there has to know what
// it means. Test two nodes with one Cache that differ in what it reads.
//
// # To add an objective
//
// Write a function of package objective, as keepwhole.go does, and have newPolicyObjective make it. It is a constraint as well: for
// a complete set its Add notes the value in the goal and accepts only a value above the floor. Before that it may refuse a device
// if no completion has a greater value, and only where the search says that it may cut. What its value depends on besides the
// claim goes into withPreferences of package plan, or a cache gives the answer of another claim. Test it against looking at all
// sets ([WithExhaustiveSearch]), and with one Cache on two nodes that differ in what it reads: also in how the same slices form
// pools, if it looks at these.
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
// as a whole, and had it been false, the search would have gone on with {1}. pruner.go of package search says
// when a branch may be cut, and why the answer is still that of the exhaustive search.
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
