// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/tree"
)

// quantifiers over devices.
var quantifiers = map[tree.Quantifier]func(deviceList, int, condition) condition{
	tree.All: newForAll, tree.Exists: newExists, tree.ExistsOne: newExistsOne,
}

// quantifier reads all, exists and exists_one over devices.
func (a *analyzer) quantifier(expr ast.Expr, s scope) condition {
	c := expr.AsComprehension()
	is, part := tree.QuantifierOf(c)
	if is == tree.NoQuantifier {
		return open{}
	}
	l, ok := a.loopOf(c, s)
	if !ok {
		return a.quantifierOfValue(c, s)
	}
	if part, ok = a.body(l, part); !ok {
		return open{}
	}
	holds := a.condition(part, l.scope)
	if isOpen(holds) {
		return open{}
	}
	return l.over(func(list deviceList) condition { return quantifiers[is](list, l.slot, holds) })
}

// deviceList reads "devices" and its filters.
func (a *analyzer) deviceList(expr ast.Expr, s scope) (deviceList, bool) {
	expr = a.normal.reduce(expr, s)
	switch expr.Kind() {
	case ast.IdentKind:
		_, shadowed := s[devicesVariable]
		return allDevices{}, expr.AsIdent() == devicesVariable && !shadowed
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		keeps, appended, ok := tree.CollectionOf(c)
		if !ok || keeps == nil || !tree.IsIdent(appended, tree.ElementVar(c)) {
			return nil, false
		}
		list, ok := a.deviceList(c.IterRange(), s)
		if !ok {
			return nil, false
		}
		slot := a.newSlot()
		return filtered{list, slot, a.condition(keeps, s.within(c, slot))}, true
	default:
		return nil, false
	}
}

// mapped reads list.map(x, value) and list.map(x, keeps, value), and filters of such
// lists.
func (a *analyzer) mapped(expr ast.Expr, s scope) (mapped, bool) {
	expr = a.normal.reduce(expr, s)
	if expr.Kind() != ast.ComprehensionKind {
		return mapped{}, false
	}
	c := expr.AsComprehension()
	keeps, value, ok := tree.CollectionOf(c)
	if !ok {
		return mapped{}, false
	}
	l, ok := a.loopOf(c, s)
	if !ok {
		return mapped{}, false
	}
	if keeps != nil {
		if keeps, ok = a.body(l, keeps); !ok {
			return mapped{}, false
		}
		l.list = filtered{l.list, l.slot, a.condition(keeps, l.scope)}
	}
	if value, ok = a.body(l, value); !ok {
		return mapped{}, false
	}
	result := mapped{l.list, l.slot, a.quantity(value, l.scope), value, l.device}
	if c.HasIterVar2() && variablesOf(value).Has(c.IterVar()) {
		result.element = nil
	}
	return result, true
}

func (a *analyzer) newSlot() int {
	a.slots++
	return a.slots - 1
}
