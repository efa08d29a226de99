// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound/read"
)

// A preference is an expression of type int. The search maximizes its value: when it finds a set, it adds the condition that
// the next set must have a greater value. This condition becomes stricter with each set, but the values of the leaves stay the
// same. So the tables belong to the analysis and are shared, and the condition belongs to the bounds of one search.

// AnalyzeGoal analyzes an expression of type int for sets of the given size. Its bounds have no condition until [Bounds.Exceed]
// sets one. ascending means that the devices of a set are in the order of the tables.
func AnalyzeGoal(expression *device.Expression, size int, ascending bool) *Analysis {
	a := &Analysis{expression: expression, size: size, ascending: ascending}
	a.problem, a.bytes = read.Goal(expression, size, a.options())
	a.within = a.problem.Usable && a.isWithin(expression.LargestSizes())
	return a
}
