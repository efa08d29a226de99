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

// unionSize converts the size of list.map(x, values).flatten().distinct() to a quantity.
func (a *analyzer) unionSize(values ast.Expr, s normal.Scope) propagate.Quantity {
	values = a.normal.Reduce(values, s)
	if !tree.IsCall(values, "flatten") || !values.AsCall().IsMemberFunction() || len(values.AsCall().Args()) > 0 {
		return propagate.Open{}
	}
	m, ok := a.mapped(values.AsCall().Target(), s)
	if !ok {
		return propagate.Open{}
	}
	leaf, ok := m.LeafOf()
	if !ok {
		return propagate.Open{}
	}
	return condition.NewUnionSize(leaf, m.List)
}

// onlyValue converts "list.distinct() == [k]", in either order, to the condition that all values are k. k must not refer to the
// set.
func (a *analyzer) onlyValue(list, only ast.Expr, s normal.Scope) (propagate.Condition, bool) {
	if _, is := tree.OnlyElement(only); !is {
		list, only = only, list
	}
	k, is := tree.OnlyElement(only)
	if !is || !tree.IsCall(list, "distinct") || !list.AsCall().IsMemberFunction() || a.normal.Unguarded.Has(list.ID()) || !normal.IsOfDevice(k, s) {
		return nil, false
	}
	values, ok := a.mapped(list.AsCall().Target(), s)
	if !ok || a.SetSize == 0 {
		return nil, false
	}
	if _, all := values.List.(condition.AllDevices); !all {
		return nil, false
	}
	write := a.normal.Write
	same := write.All(a.normal.Again(list.AsCall().Target()), func(x ast.Expr) ast.Expr { return write.Equals(x, a.normal.Again(k)) })
	a.normal.Require(same, s)
	then := a.condition(same, s)
	if propagate.IsOpen(then) {
		return nil, false
	}
	if leaf, ok := values.Column(); ok {
		return condition.NewAssuming(condition.HasKeys(leaf), then, propagate.Open{}), true
	}
	if p, ok := condition.CountedBy(values.Mapped); ok {
		return condition.NewAssuming(condition.IsExact(p), then, propagate.Open{}), true
	}
	return nil, false
}
