// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/device/bound/condition"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

// Two sorted lists are equal if each value occurs equally often in both. So the equality becomes a condition on counts:
//
//	list.sort() == [1, 1, 2]        list.size() == 3 && list.filter(x, x == 1).size() == 2 && ...
//	list.sort() == other.sort()     list.size() == other.size() && list.all(x, ... == ...)
//
// A list can only be sorted if all values have one type. condition.NewSortable checks this.

// sortedComparison converts a comparison of a sorted list with constants or with another sorted list.
func (a *analyzer) sortedComparison(left, right ast.Expr, s normal.Scope) (propagate.Condition, bool) {
	list, values, ok := a.sortedValues(left, s)
	other, otherValues, too := a.sortedValues(right, s)
	var same ast.Expr
	var lists []condition.Mapped
	switch {
	case ok && too:
		same, lists = a.normal.SameCounts(list, other), []condition.Mapped{values.Mapped, otherValues.Mapped}
	case ok:
		same, lists = a.normal.HasCounts(list, right), []condition.Mapped{values.Mapped}
	case too:
		same, lists = a.normal.HasCounts(other, left), []condition.Mapped{otherValues.Mapped}
	}
	if same == nil {
		return nil, false
	}
	a.normal.Traced(normal.CompareSorted, a.normal.Write.Equals(left, right), same)
	a.normal.Require(same, s)
	then := a.condition(same, s)
	if propagate.IsOpen(then) {
		return nil, false
	}
	return condition.NewSortable(lists, then), true
}

// sortedValues recognizes list.sort() for a list of values of devices, and returns the list without sort.
func (a *analyzer) sortedValues(expr ast.Expr, s normal.Scope) (list ast.Expr, values writtenMap, ok bool) {
	expr = a.normal.Reduce(expr, s)
	if !tree.IsCall(expr, "sort") || !expr.AsCall().IsMemberFunction() || a.normal.Unguarded.Has(expr.ID()) {
		return nil, writtenMap{}, false
	}
	list = a.normal.Reduce(expr.AsCall().Target(), s)
	values, ok = a.mapped(list, s)
	_, known := values.LeafOf()
	return list, values, ok && known
}
