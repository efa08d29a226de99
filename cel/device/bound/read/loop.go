// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device/bound/condition"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

// A condition on values of devices is converted to a condition on the devices. The expression for the value (the element)
// replaces the variable of the list:
//
//	devices.map(d, row(d)).exists(x, x == 3)    devices.exists(d, row(d) == 3)
//
// The two forms differ if the element fails for some device. Then the list as a whole fails, and the other elements don't
// matter.

// A loop is the range of a comprehension: a list of devices, or a list of values of devices.
type loop struct {
	list condition.DeviceList
	slot int
	// scope is the scope of the body. element is the value that replaces variable in the body. It is nil if variable is the
	// device.
	scope    normal.Scope
	variable string
	element  ast.Expr
	// device is the variable for the device in element.
	device typedVariable
	// noneFails is the premise that no value in the list fails. It is nil if no such premise is available.
	noneFails condition.Premise
}

// loopOf converts the range of a comprehension. It returns false if the range is not a list of devices or of values of devices.
func (a *analyzer) loopOf(c ast.ComprehensionExpr, s normal.Scope) (loop, bool) {
	if list, ok := a.deviceList(c.IterRange(), s); ok {
		slot := a.newSlot()
		device := typedVariable{tree.ElementVar(c), a.normal.TypeOf(tree.ElementVar(c), c)}
		return loop{list: list, slot: slot, scope: s.Within(c, slot), device: device}, true
	}
	m, ok := a.mapped(c.IterRange(), s)
	if !ok || m.element == nil {
		return loop{}, false
	}
	// The device variable needs a new name, because the body may have a variable with the same name.
	device := typedVariable{a.normal.Write.Name(), m.device.of}
	result := loop{list: condition.NewValued(m.Mapped), slot: m.Slot, scope: s.Inside(c).With(device.name, normal.DeviceIn(m.Slot)), device: device}
	result.variable = tree.ElementVar(c)
	result.element, ok = a.normal.Substitute(m.element, m.device.name, a.normal.Write.Ident(device.name, device.of), false)
	if leaf, ok := m.Column(); ok {
		result.noneFails = condition.Behaves(leaf, propagate.Failing)
	} else if p, ok := condition.CountedBy(m.Mapped); ok {
		result.noneFails = condition.IsExact(p)
	}
	return result, ok
}

// typedVariable is the name and the type of a variable.
type typedVariable struct {
	name string
	of   *types.Type
}

// body returns a part of the loop's body as an expression over devices: the loop's element replaces its variable.
func (a *analyzer) body(l loop, part ast.Expr) (ast.Expr, bool) {
	if l.element == nil {
		return part, true
	}
	result, ok := a.normal.Substitute(part, l.variable, l.element, false)
	if ok {
		a.normal.Replace(part, result, l.scope)
	}
	return result, ok
}

// over returns build(list). If noneFails is available, the condition instead evaluates the cheaper build(AllDevices) while no
// value fails.
func (l loop) over(build func(condition.DeviceList) propagate.Condition) propagate.Condition {
	general := build(l.list)
	if l.noneFails == nil {
		return general
	}
	return condition.NewAssuming(l.noneFails, build(condition.AllDevices{}), general)
}

// oneValue converts "list.distinct().size() == 1" for values that refer to the set. The result is the condition that any two
// values are equal, and that there is a value.
//
//	devices.map(d, devices.filter(o, o.tray == d.tray).size()).distinct().size() == 1
func (a *analyzer) oneValue(c condition.Comparison, left, right ast.Expr, s normal.Scope) (propagate.Condition, bool) {
	number, size := c.Left, right
	if propagate.IsOpen(c.Left) {
		number, size = c.Right, left
	}
	if number != (condition.Constant{Value: 1}) || c.Relation != outcome.Equal || !tree.IsCall(size, "size") {
		return nil, false
	}
	list := a.normal.Reduce(operand(size.AsCall()), s)
	if !tree.IsCall(list, "distinct") {
		return nil, false
	}
	list, ok := a.normal.ValuesOf(list, s)
	if !ok {
		return nil, false
	}
	write := a.normal.Write
	same := write.All(list, func(x ast.Expr) ast.Expr {
		return write.All(a.normal.Again(list), func(y ast.Expr) ast.Expr { return write.Equals(x, y) })
	})
	any := write.Exists(a.normal.Again(list), func(ast.Expr) ast.Expr { return write.Literal(types.True) })
	both := write.And(same, any)
	a.normal.Traced(normal.CompareAll, size, both)
	a.normal.Require(both, s)
	return a.condition(both, s), true
}
