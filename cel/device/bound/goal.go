// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound/read"
)

// A preference is an expression of type int: a set is the better the greater its value is. A search
// that has found a set asks for a better one, and that is a condition as any other: the value is
// above that of the best set so far. It becomes narrower with each set that is found, while what the
// expression says of devices stays the same. So the tables belong to the analysis of the value, and
// the condition to the bounds of one search.

// AnalyzeGoal reads an expression of type int, for sets of the given size. Its bounds know no
// condition until they are told of one by [Bounds.Exceed]. ascending is for sets as those of
// [AnalyzeAscending].
func AnalyzeGoal(expression *device.Expression, size int, ascending bool) *Analysis {
	a := &Analysis{expression: expression, size: size, ascending: ascending}
	a.problem, a.bytes = read.Goal(expression, size, a.options())
	a.within = a.problem.Usable && a.isWithin(expression.LargestSizes())
	return a
}
