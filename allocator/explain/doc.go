// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain explains why claims do not fit on a node. It reports the free devices, the condition that no set of free
// devices satisfies, and the claims that have the missing devices. It allocates nothing. Each statement is the result of a
// search by package allocator, not a guess.
//
//	p := &explain.Problem{Problem: allocator.Problem{Claims: claims, Allocated: allocated, Classes: classes, Slices: slices, …}}
//	e, err := p.Node(ctx, node)
//	fmt.Println(e) // 5 of 12 devices are free, but no set of 4 satisfies ... : claim default/a has mla-3
//
// The search by itself only shows that there is no solution. The first obstacle that the search meets may not be the obstacle
// that a user must remove. So package explain runs further searches, which find:
//
//  1. The unmet condition. Conditions are added in the order of the claims: first no constraint, then one constraint after the
//     other, and each CEL constraint conjunct by conjunct. The unmet condition is the first one that leaves no solution. More
//     conditions never allow more sets, so bisection finds it.
//  2. Other causes ([Cause]). Taints, unusable pools, counters, capacities, node selectors of devices and features are removed
//     from the problem, one kind at a time. If the claims fit without one kind, that kind is a cause. If no single kind is
//     enough, all kinds are removed and then put back one by one. The kinds that can't be put back are the causes.
//  3. The claims in the way. If the claims would fit with all devices of the node free, allocated claims get their devices back
//     one by one, as long as the new claims fit. At least one of the remaining allocated claims must give back its devices.
//     Claims of other namespaces are counted instead of named, unless [Problem.NamesAll] is set.
//
// For a claim with devices, [Problem.Score] compares the values of its preferences with two optima: the best set that leaves
// the other claims their devices, and the best set on the empty node.
//
// To add a cause:
//
//  1. In cause.go, add a constant for the kind, and a method of [Problem] that returns the problem without the cause, or nil if
//     the problem does not have the cause. Add a row to relaxations. The position of the row matters: if several causes must be
//     removed together, the search first tries to leave out the earlier kinds.
//  2. In cause_message.go, add the message. If the message needs a search or the owners of devices, its field in the row is
//     nil, and [Problem.cause] gets a case for the kind. A row with neither a message nor a case panics.
//  3. In cause_test.go, add a fault of the kind to the type world, the kind to the lists of TestCausesAreTrue, and the message
//     to TestCausesInWords.
package explain
