// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain says why claims do not fit on a node: which devices are free, which
// condition no set of them can satisfy, and which claims have the devices that are
// missing. Nothing is allocated, and nothing is guessed: each statement is the answer
// of a search by package allocator.
//
//	p := &explain.Problem{Problem: allocator.Problem{Claims: claims, Allocated: allocated, Classes: classes, Slices: slices, …}}
//	e, err := p.Node(ctx, node)
//	fmt.Println(e) // 5 of 12 devices are free, but no set of 4 satisfies ... : claim default/a has mla-3
//
// The search itself tells only that there is no solution, because the first thing that
// went wrong in it need not be what a user has to change. So three more questions are asked.
//
// What can't be met? Conditions are added one by one, in the order of the claims: first
// no constraint at all, then one constraint after the other, and of a CEL constraint one
// conjunct after the other. The first with which there is no solution any more is named.
// More conditions never make more sets possible, so it is found by bisection.
//
// What else? Taints, pools that can't be used, counters, capacities, node selectors of devices and features are taken out
// of the problem, one kind after the other ([Cause]). Each with which the claims fit is named. If there is none, all are
// taken out, and those are named that can't be put back.
//
// Who is in the way? If the claims would fit on the node with all of its devices free,
// owners are made to keep their devices one after the other, as long as the claims fit.
// Those who can't keep theirs are named: not all of them could keep what they have. Claims of
// other namespaces are counted, unless [Problem.NamesAll] says that the reader may know them.
//
// Of a claim that has its devices there is another question: how good are they by its preferences?
// [Problem.Score] tells their values, and those of the best set that it could have, by allocating it
// anew beside the others and on the node alone.
package explain
