// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain explains why claims do not fit on a node. It finds the free devices, the condition that no set of them can
// satisfy, and the claims with the missing devices. It allocates nothing. Each statement is the result of a search by package
// allocator, not a guess.
//
//	p := &explain.Problem{Problem: allocator.Problem{Claims: claims, Allocated: allocated, Classes: classes, Slices: slices, …}}
//	e, err := p.Node(ctx, node)
//	fmt.Println(e) // 5 of 12 devices are free, but no set of 4 satisfies ... : claim default/a has mla-3
//
// The search itself only finds that there is no solution. The first obstacle in the search need not be the one that a user must
// change. So three more questions are answered:
//
//  1. The unmet condition. Conditions are added in the order of the claims: first no constraint, then one constraint after the
//     other, and each CEL constraint conjunct by conjunct. The first condition that leaves no solution is named. More conditions
//     never allow more sets, so bisection finds it.
//  2. Other causes. Taints, unusable pools, counters, capacities, node selectors of devices and features are removed from the
//     problem, one kind at a time ([Cause]). If the claims fit without one kind, it is named. If no single kind is enough, all
//     are removed, and the kinds that can't be put back are named.
//  3. The claims in the way. If the claims would fit with all devices of the node free, owners get their devices back one by
//     one, as long as the claims fit. The remaining owners are named: not all of them can keep their devices. Claims of other
//     namespaces are counted, unless [Problem.NamesAll] is set.
//
// For a claim with devices, [Problem.Score] rates them by the claim's preferences. It compares their values with the best set
// beside the other claims, and with the best set on the empty node.
//
// To add a cause:
//
//  1. In cause.go, add a constant for the kind, and a method of [Problem] that returns the problem without the cause, or nil if
//     the problem does not have the cause. Add a row to relaxations. The position of the row matters: if several causes must be
//     removed together, earlier kinds are dropped from the answer first.
//  2. In cause_message.go, add the message. If the message needs a search or the owners of devices, its field in the row is nil,
//     and [Problem.cause] gets a case for the kind. A row with neither a message nor a case panics.
//  3. In cause_test.go, add a fault of the kind to the type world, the kind to the lists of TestCausesAreTrue, and the message to
//     TestCausesInWords.
package explain
