// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objective finds the best solution by branch and bound. Each preference is an objective. The best solution has the
// greatest value of all solutions. Among equal solutions, the package chooses the first in the order of the search.
//
//  1. The first search ignores preferences. Its solution is the incumbent.
//  2. A second search has an additional condition: the value must be above the floor, which is the value of the incumbent.
//     Package bound computes an upper bound of the value for each partial set, so the condition cuts branches like a
//     constraint.
//  3. Each solution becomes the incumbent and raises the floor, and the search continues. Solutions come in order, and a
//     solution of equal value is refused. So the last solution is the first of the best solutions.
//  4. With several preferences, there is one search for each preference, and the values of earlier preferences must not fall. A
//     prioritized list takes precedence over preferences: the alternatives that the first search chose are fixed.
//
// An objective is an expression that returns an int (expression.go), or a policy such as KeepWhole (keepwhole.go).
//
// All preferences together have a separate budget. When this budget is exhausted, the incumbent is the result. The incumbent is
// also the result after a failure that no preference caused, such as a selector that fails for a device beyond the first
// search.
//
// An [Optimization] is the work of one Allocate call. It returns the cached result, or runs the searches and caches the result.
package objective
