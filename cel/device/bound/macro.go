// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// CEL expands its macros into comprehensions before anybody sees them. What
// follows recognizes the expansions: a loop over a list with an accumulator, its
// initial value, a condition to go on, a step and a result.

// quantifier reads all, exists and exists_one over devices.
func (a *analyzer) quantifier(expr ast.Expr, s scope) condition {
	c := expr.AsComprehension()
	part, quantify := quantified(c)
	if quantify == nil {
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
	result := l.over(func(list deviceList) condition { return quantify(list, l.slot, holds) })
	if either, ok := a.inEitherOrder(expr, s); ok {
		return ordered{result, either}
	}
	return result
}

// quantified recognizes all, exists and exists_one, and returns what must hold.
func quantified(c ast.ComprehensionExpr) (holds ast.Expr, quantify func(deviceList, int, condition) condition) {
	step := c.LoopStep()
	switch {
	case isLiteral(c.AccuInit(), types.True) && isFold(step, operators.LogicalAnd, c.AccuVar()) && isAccumulator(c.Result(), c.AccuVar()):
		return step.AsCall().Args()[1], newForAll
	case isLiteral(c.AccuInit(), types.False) && isFold(step, operators.LogicalOr, c.AccuVar()) && isAccumulator(c.Result(), c.AccuVar()):
		return step.AsCall().Args()[1], newExists
	case isLiteral(c.AccuInit(), types.Int(0)) && isCount(step, c.AccuVar()) && isOne(c.Result(), c.AccuVar()):
		return step.AsCall().Args()[0], newExistsOne
	default:
		return nil, nil
	}
}

// deviceList reads "devices" and its filters.
func (a *analyzer) deviceList(expr ast.Expr, s scope) (deviceList, bool) {
	expr = a.reduce(expr, s)
	switch expr.Kind() {
	case ast.IdentKind:
		_, shadowed := s[devicesVariable]
		return allDevices{}, expr.AsIdent() == devicesVariable && !shadowed
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		keeps, appended, ok := appends(c)
		if !ok || keeps == nil || appended.Kind() != ast.IdentKind || appended.AsIdent() != elementOf(c) {
			return nil, false
		}
		list, ok := a.deviceList(c.IterRange(), s)
		if !ok {
			return nil, false
		}
		slot := a.newSlot()
		return filtered{list, slot, a.condition(keeps, s.within(c, slot).withPlace(c, list, slot))}, true
	case ast.CallKind:
		return a.eitherList(expr.AsCall(), s)
	default:
		return nil, false
	}
}

// eitherList reads "when ? list : list".
func (a *analyzer) eitherList(call ast.CallExpr, s scope) (deviceList, bool) {
	if call.FunctionName() != operators.Conditional {
		return nil, false
	}
	yes, ok := a.deviceList(call.Args()[1], s)
	no, too := a.deviceList(call.Args()[2], s)
	if !ok || !too {
		return nil, false
	}
	switch when := a.condition(call.Args()[0], s); {
	case isVerdict(when, True):
		return yes, true
	case isVerdict(when, False):
		return no, true
	default:
		return eitherList{when, yes, no}, true
	}
}

// mapped reads list.map(x, value) and list.map(x, keeps, value), and filters of such
// lists.
func (a *analyzer) mapped(expr ast.Expr, s scope) (mapped, bool) {
	expr = a.reduce(expr, s)
	if expr.Kind() != ast.ComprehensionKind {
		return mapped{}, false
	}
	c := expr.AsComprehension()
	keeps, value, ok := appends(c)
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

// appends recognizes the expansion of filter and map: a list to which an element
// is appended in each step, on a condition or always.
func appends(c ast.ComprehensionExpr) (keeps, element ast.Expr, ok bool) {
	if c.AccuInit().Kind() != ast.ListKind || c.AccuInit().AsList().Size() != 0 ||
		!isLiteral(c.LoopCondition(), types.True) || !isAccumulator(c.Result(), c.AccuVar()) {
		return nil, nil, false
	}
	step := c.LoopStep()
	if isCall(step, operators.Conditional) {
		args := step.AsCall().Args()
		if !isAccumulator(args[2], c.AccuVar()) {
			return nil, nil, false
		}
		keeps, step = args[0], args[1]
	}
	if !isFold(step, operators.Add, c.AccuVar()) {
		return nil, nil, false
	}
	list := step.AsCall().Args()[1]
	if list.Kind() != ast.ListKind || list.AsList().Size() != 1 || len(list.AsList().OptionalIndices()) > 0 {
		return nil, nil, false
	}
	return keeps, list.AsList().Elements()[0], true
}

func (a *analyzer) newSlot() int {
	a.slots++
	return a.slots - 1
}

func isCall(expr ast.Expr, function string) bool {
	return expr.Kind() == ast.CallKind && expr.AsCall().FunctionName() == function
}

// isFold recognizes "accumulator OPERATOR something".
func isFold(expr ast.Expr, operator, accumulator string) bool {
	return isCall(expr, operator) && len(expr.AsCall().Args()) == 2 && isAccumulator(expr.AsCall().Args()[0], accumulator)
}

// isCount recognizes "something ? accumulator + 1 : accumulator".
func isCount(expr ast.Expr, accumulator string) bool {
	if !isCall(expr, operators.Conditional) {
		return false
	}
	args := expr.AsCall().Args()
	return isFold(args[1], operators.Add, accumulator) && isLiteral(args[1].AsCall().Args()[1], types.Int(1)) &&
		isAccumulator(args[2], accumulator)
}

// isOne recognizes "accumulator == 1".
func isOne(expr ast.Expr, accumulator string) bool {
	return isFold(expr, operators.Equals, accumulator) && isLiteral(expr.AsCall().Args()[1], types.Int(1))
}

func isAccumulator(expr ast.Expr, name string) bool {
	return expr.Kind() == ast.IdentKind && expr.AsIdent() == name
}

func isLiteral[T comparable](expr ast.Expr, value T) bool {
	if expr.Kind() != ast.LiteralKind {
		return false
	}
	literal, ok := expr.AsLiteral().(any).(T)
	return ok && literal == value
}
