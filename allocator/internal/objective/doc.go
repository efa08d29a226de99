// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objective finds the best solution by branch and bound. A preference is an objective. The best solution has the greatest
// value of all sets that satisfy every constraint. If several sets have that value, the first in the order of the search is
// chosen.
//
//  1. The first search ignores preferences. Its solution is the incumbent.
//  2. A second search has one more condition: the value must be above the floor, which is the value of the incumbent. Package
//     bound computes an upper bound of the value for each partial set, so this condition cuts branches like a constraint.
//  3. Each solution becomes the incumbent and raises the floor, and the search continues. Solutions come in order and solutions
//     of equal value are refused, so the last solution is the first of the best.
//  4. If there are several preferences, one search follows the other, and the values of earlier preferences must not fall. A
//     prioritized list is a stronger preference: the alternatives that the first search chose are fixed.
//
// An objective is an expression that returns an int (expression.go), or a policy such as KeepWhole (keepwhole.go).
//
// All preferences together have a separate budget. When it is exhausted, the incumbent is the answer. It is also the answer after
// failures that preferences did not cause, such as a selector that fails on a device the first search never reached.
//
// An [Optimization] is the work of one call: it looks up the answer, or runs these searches and caches their answer.
package objective
