// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound/condition"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

// quantifiers maps each quantifier over devices to the constructor of its condition.
var quantifiers = map[tree.Quantifier]func(condition.DeviceList, int, propagate.Condition) propagate.Condition{
	tree.All: condition.NewForAll, tree.Exists: condition.NewExists, tree.ExistsOne: condition.NewExistsOne,
}

// quantifier converts all, exists and exists_one over devices.
func (a *analyzer) quantifier(expr ast.Expr, s normal.Scope) propagate.Condition {
	c := expr.AsComprehension()
	is, part := tree.QuantifierOf(c)
	if is == tree.NoQuantifier {
		return propagate.Open{}
	}
	l, ok := a.loopOf(c, s)
	if !ok {
		return a.quantifierOfValue(c, s)
	}
	if part, ok = a.body(l, part); !ok {
		return propagate.Open{}
	}
	holds := a.condition(part, l.scope)
	if propagate.IsOpen(holds) {
		return propagate.Open{}
	}
	return l.over(func(list condition.DeviceList) propagate.Condition {
		general := quantifiers[is](list, l.slot, holds)
		if _, all := list.(condition.AllDevices); all && is == tree.All {
			if distances, ok := a.DistancesOfAll(l.slot, holds, general); ok {
				return distances
			}
		}
		return general
	})
}

// deviceList converts "devices" and filters of it. It returns false for other lists.
func (a *analyzer) deviceList(expr ast.Expr, s normal.Scope) (condition.DeviceList, bool) {
	expr = a.normal.Reduce(expr, s)
	switch expr.Kind() {
	case ast.IdentKind:
		_, shadowed := s[expr.AsIdent()]
		return condition.AllDevices{}, device.IsSet(expr.AsIdent()) && !shadowed
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
		return condition.NewFiltered(list, slot, a.condition(keeps, s.Within(c, slot))), true
	default:
		return nil, false
	}
}

// A writtenMap is list.map(x, value) with its syntax.
type writtenMap struct {
	condition.Mapped
	// element is the syntax of value, or nil if value depends on the index in the list. device is the device variable in
	// element.
	element ast.Expr
	device  typedVariable
}

// mapped converts list.map(x, value), list.map(x, keeps, value) and filters of such lists.
func (a *analyzer) mapped(expr ast.Expr, s normal.Scope) (writtenMap, bool) {
	expr = a.normal.Reduce(expr, s)
	if expr.Kind() != ast.ComprehensionKind {
		return writtenMap{}, false
	}
	c := expr.AsComprehension()
	keeps, value, ok := tree.CollectionOf(c)
	if !ok {
		return writtenMap{}, false
	}
	l, ok := a.loopOf(c, s)
	if !ok {
		return writtenMap{}, false
	}
	if keeps != nil {
		if keeps, ok = a.body(l, keeps); !ok {
			return writtenMap{}, false
		}
		l.list = condition.NewFiltered(l.list, l.slot, a.condition(keeps, l.scope))
	}
	if value, ok = a.body(l, value); !ok {
		return writtenMap{}, false
	}
	result := writtenMap{condition.Mapped{List: l.list, Slot: l.slot, Value: a.quantity(value, l.scope)}, value, l.device}
	if c.HasIterVar2() && normal.VariablesOf(value).Has(c.IterVar()) {
		result.element = nil
	}
	return result, true
}

// maxElements is the maximum length of a device's list in a quantifier that is written out element by element.
const maxElements = 8

// quantifierOfValue converts a quantifier over a list that belongs to a device. It becomes a condition on the first element,
// the second element and so on, up to the last element. The result is open if a list is longer than maxElements.
//
//	d.peers.all(p, devices.exists(o, o.id == p))
func (a *analyzer) quantifierOfValue(c ast.ComprehensionExpr, s normal.Scope) propagate.Condition {
	list := c.IterRange()
	if !normal.IsOfDevice(list, s) || !a.normal.IsList(list) || a.normal.HasGuarded(c) {
		return propagate.Open{}
	}
	elements := make([]ast.Expr, maxElements)
	for i := range elements {
		elements[i] = a.normal.Write.Call(operators.Index, "", a.normal.Write.ElementType(list), a.normal.Again(list), a.normal.Write.Literal(types.Int(i)))
	}
	is, _ := tree.QuantifierOf(c)
	result, ok := a.normal.ConditionOnEach(c, elements, func(holds ast.Expr, place int) ast.Expr {
		return a.normal.Write.Conditional(types.BoolType, a.normal.WriteSizeIs(operators.Greater, overloads.GreaterInt64, list, place), holds, a.normal.Write.Literal(types.Bool(is == tree.All)))
	})
	if !ok {
		return propagate.Open{}
	}
	isShort := a.normal.Write.And(a.normal.IsFound(list), a.normal.WriteSizeIs(operators.LessEquals, overloads.LessEqualsInt64, list, maxElements))
	return condition.NewConditional(a.condition(isShort, s), a.condition(result, s), propagate.Open{})
}
