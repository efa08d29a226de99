// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objective finds the best solution by branch and bound. A preference is an objective: of the sets that satisfy every
// constraint, one with the greatest value is taken, and of those the first in the order of the search.
//
//  1. The first search knows no preferences. Its solution is the incumbent.
//  2. Another search has one more condition: the value is above the floor, which is the value of the incumbent. Package bound
//     has an upper bound of the value for each part of a set, so this condition cuts as a constraint does.
//  3. Each solution is the next incumbent and raises the floor, and the search goes on from there. Solutions come in order,
//     and solutions of equal value are refused, so the last one is the first of the best.
//  4. If there are several preferences, the searches follow each other. The values of the preferences before may not fall. A
//     prioritized list is a stronger preference: the alternatives that the first search decided for remain.
//
// An objective is an expression that returns an int (expression.go), or a policy such as KeepWhole (keepwhole.go).
//
// The searches have a budget of their own, for all preferences together. When it is used up, the incumbent is the answer. The
// same holds if something fails that has nothing to do with preferences, such as a selector for a device that the first search
// did not come to: a claim that can be met is not refused for it.
//
// An [Optimization] is the work of one call: it looks the answer up, or runs these searches and keeps the answer.
package objective
