// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device/bitset"
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
		same, lists = a.normal.sameCounts(list, other), []mapped{values, otherValues}
	case ok:
		same, lists = a.normal.hasCounts(list, right), []mapped{values}
	case too:
		same, lists = a.normal.hasCounts(other, left), []mapped{otherValues}
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
func (a *analyzer) sortedValues(expr ast.Expr, s scope) (list ast.Expr, values mapped, ok bool) {
	expr = a.normal.reduce(expr, s)
	if !tree.IsCall(expr, "sort") || !expr.AsCall().IsMemberFunction() || a.normal.unguarded.Has(expr.ID()) {
		return nil, mapped{}, false
	}
	list = a.normal.reduce(expr.AsCall().Target(), s)
	values, ok = a.mapped(list, s)
	_, known := values.leafOf()
	return list, values, ok && known
}

// hasCounts writes that a list has the constants of another one, as often as they are there. It is
// nil if there are none.
func (n *normalizer) hasCounts(list, other ast.Expr) ast.Expr {
	constants, ok := n.constants(other)
	if !ok {
		return nil
	}
	if !isSorted(constants) {
		return n.write.And(n.isFound(list), n.write.Literal(types.False))
	}
	size := n.write.Equals(n.write.Size(n.again(list)), n.write.Literal(types.Int(len(constants))))
	var each []ast.Expr
	for from := 0; from < len(constants); {
		value, count := constants[from], 0
		for ; from < len(constants) && constants[from].AsLiteral() == value.AsLiteral(); from++ {
			count++
		}
		each = append(each, n.write.Equals(n.countOf(list, value), n.write.Literal(types.Int(count))))
	}
	return n.write.And(size, n.conjunction(each, func(e ast.Expr) ast.Expr { return e }))
}

// isSorted reports whether all are ints or all strings, in their order.
func isSorted(constants []ast.Expr) bool {
	for i, c := range constants {
		value := c.AsLiteral()
		if !isOrdered(value) || value.Type() != constants[0].AsLiteral().Type() || i > 0 && compareValues(constants[i-1].AsLiteral(), value) > 0 {
			return false
		}
	}
	return true
}

// sameCounts writes that two lists have the same values, each as often.
func (n *normalizer) sameCounts(list, other ast.Expr) ast.Expr {
	size := n.write.Equals(n.write.Size(n.again(list)), n.write.Size(n.again(other)))
	return n.write.And(size, n.write.All(n.again(list), func(x ast.Expr) ast.Expr {
		return n.write.Equals(n.countOf(list, x), n.countOf(other, x))
	}))
}

// countOf writes how often a value is in a list.
func (n *normalizer) countOf(list, value ast.Expr) ast.Expr {
	return n.write.Size(n.write.Filter(n.again(list), func(x ast.Expr) ast.Expr { return n.write.Same(x, value) }))
}

// leafOf is the leaf whose values for devices are in the list.
func (m mapped) leafOf() (*leaf, bool) {
	v, tabulated := m.value.(value)
	if !tabulated || !v.isColumn(m.slot) {
		return nil, false
	}
	return v.leaf, true
}

// sortable is a condition that says the same as another one as long as the values of the lists can
// be sorted.
type sortable struct {
	lists []mapped
	then  condition
}

func (n sortable) holds(s *state) bool {
	for _, m := range n.lists {
		leaf, _ := m.leafOf()
		c := s.column(leaf)
		if c == nil || !c.groups.sorted {
			return false
		}
		for _, devices := range [2]bitset.Set{s.Chosen, s.Domain} {
			for i := range devices.All() {
				within := m.list.membership(s, i)
				if within.may(Error) || within.may(True) && !c.groups.known.Has(i) {
					return false
				}
			}
		}
	}
	return true
}

func (n sortable) bound(s *state) Outcome {
	if !n.holds(s) {
		return Open
	}
	return n.then.bound(s)
}

func (n sortable) negation() condition { return sortable{n.lists, newNot(n.then)} }

func (n sortable) propagate(s *state) status {
	if !n.holds(s) {
		return noFix
	}
	return s.propagate(n.then)
}
