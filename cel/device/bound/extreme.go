// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/tree"
)

// A condition on the greatest or the smallest of some numbers of devices is one on each of them, or on one of them:
//
//	devices.map(d, devices.filter(o, linked(d, o)).size()).min() >= 2    devices.all(d, devices.filter(o, linked(d, o)).size() >= 2)

// extreme reads limits of the greatest or the smallest number of devices. It is c for other quantities.
func (a *analyzer) extreme(c comparison, of greatest, l limits) condition {
	p, ok := countedBy(of.mapped)
	if !ok || a == nil {
		return c
	}
	// For all devices the number is on the near side of one limit, for one device on the far side of the other.
	each, one := limits{unlimitedBelow, l.most}, limits{l.least, unlimited}
	if of.negated {
		each, one = limits{l.least, unlimited}, limits{unlimitedBelow, l.most}
	}
	var result condition = verdict{True}
	if each != (limits{unlimitedBelow, unlimited}) {
		result = newForAll(allDevices{}, of.slot, a.sizeWithin(of.value, each))
	}
	if one != (limits{unlimitedBelow, unlimited}) {
		result = a.newAnd(result, newExists(allDevices{}, of.slot, a.sizeWithin(of.value, one)))
	}
	return assuming{exact{p}, result, c}
}

// sizeWithin is the condition that a number of devices is within limits.
func (a *analyzer) sizeWithin(q quantity, l limits) condition {
	var general condition = verdict{True}
	if l.least != unlimitedBelow {
		general = comparison{lessOrEqual, constant{l.least}, q}
	}
	if l.most != unlimited {
		general = comparison{lessOrEqual, q, constant{l.most}}
	}
	c, _ := general.(comparison)
	return a.withLimits(c, q, l)
}

// countedBy recognizes, for each device of the set, the number of devices for which a predicate holds.
func countedBy(m mapped) (*predicate, bool) {
	number, ok := m.value.(size)
	if _, all := m.list.(allDevices); !ok || !all {
		return nil, false
	}
	p, _, ok := predicateOver(number.list, 0, nil)
	return p, ok
}

// onlyValue reads "list.distinct() == [k]", in either order: all values are k. k must not speak of the set.
func (a *analyzer) onlyValue(list, only ast.Expr, s scope) (condition, bool) {
	if _, is := tree.OnlyElement(only); !is {
		list, only = only, list
	}
	k, is := tree.OnlyElement(only)
	if !is || !tree.IsCall(list, "distinct") || !list.AsCall().IsMemberFunction() || a.normal.unguarded.Has(list.ID()) || !isOfDevice(k, s) {
		return nil, false
	}
	values, ok := a.mapped(list.AsCall().Target(), s)
	if !ok || a.setSize == 0 {
		return nil, false
	}
	if _, all := values.list.(allDevices); !all {
		return nil, false
	}
	write := a.normal.write
	same := write.All(a.normal.again(list.AsCall().Target()), func(x ast.Expr) ast.Expr { return write.Equals(x, a.normal.again(k)) })
	a.normal.require(same, s)
	then := a.condition(same, s)
	if isOpen(then) {
		return nil, false
	}
	if leaf, ok := values.column(); ok {
		return assuming{hasKeys{leaf}, then, open{}}, true
	}
	if p, ok := countedBy(values); ok {
		return assuming{exact{p}, then, open{}}, true
	}
	return nil, false
}
