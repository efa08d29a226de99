// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/tree"
)

// Two sorted lists are equal if each value is in both as often.
//
//	list.sort() == [1, 1, 2]        list.size() == 3 && list.filter(x, x == 1).size() == 2 && ...
//	list.sort() == other.sort()     list.size() == other.size() && list.all(x, ... == ...)
//
// Lists can be sorted if all values are of one type ([sortable]).

// sortedComparison reads a comparison of sorted values with constants, or with other sorted
// values.
func (a *analyzer) sortedComparison(left, right ast.Expr, s scope) (condition, bool) {
	list, values, ok := a.sortedValues(left, s)
	other, otherValues, too := a.sortedValues(right, s)
	var same ast.Expr
	var lists []mapped
	switch {
	case ok && too:
		same, lists = a.normal.sameCounts(list, other), []mapped{values.mapped, otherValues.mapped}
	case ok:
		same, lists = a.normal.hasCounts(list, right), []mapped{values.mapped}
	case too:
		same, lists = a.normal.hasCounts(other, left), []mapped{otherValues.mapped}
	}
	if same == nil {
		return nil, false
	}
	a.normal.traced(compareSorted, a.normal.write.Equals(left, right), same)
	a.normal.require(same, s)
	then := a.condition(same, s)
	if isOpen(then) {
		return nil, false
	}
	return sortable{lists, then}, true
}

// sortedValues recognizes list.sort(), the list being values of devices.
func (a *analyzer) sortedValues(expr ast.Expr, s scope) (list ast.Expr, values writtenMap, ok bool) {
	expr = a.normal.reduce(expr, s)
	if !tree.IsCall(expr, "sort") || !expr.AsCall().IsMemberFunction() || a.normal.unguarded.Has(expr.ID()) {
		return nil, writtenMap{}, false
	}
	list = a.normal.reduce(expr.AsCall().Target(), s)
	values, ok = a.mapped(list, s)
	_, known := values.leafOf()
	return list, values, ok && known
}
