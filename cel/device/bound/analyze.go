// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device"
)

// devicesVariable is the variable that the set is in.
const devicesVariable = "devices"

// Analyze reads an expression for sets of the given size. What it does not
// understand is open.
func Analyze(expression *device.Expression, size int) *Analysis {
	a := &analyzer{expression: expression, setSize: size}
	result := &Analysis{}
	absorbed, distinct := isAbsorbed(expression.AST().Expr())
	if !absorbed {
		return result
	}
	for _, conjunct := range conjuncts(expression.AST().Expr()) {
		c := a.condition(conjunct, scope{})
		if v, constant := c.(verdict); constant && v.outcome == True {
			continue
		}
		result.conjuncts = append(result.conjuncts, c)
	}
	if len(a.distincts) < distinct {
		return &Analysis{}
	}
	result.usable = true
	result.leaves, result.slots, result.distincts = a.leaves, a.slots, a.distincts
	return result
}

// conjuncts splits at the top-level "&&".
func conjuncts(expr ast.Expr) []ast.Expr {
	if expr.Kind() == ast.CallKind && expr.AsCall().FunctionName() == operators.LogicalAnd {
		args := expr.AsCall().Args()
		var result []ast.Expr
		for _, arg := range args {
			result = append(result, conjuncts(arg)...)
		}
		return result
	}
	return []ast.Expr{expr}
}

type analyzer struct {
	expression *device.Expression
	setSize    int
	leaves     []*leaf
	distincts  []distinctSize
	slots      int
}

// variable is an iteration variable that stands for a device.
type variable struct {
	name string
	slot int
}

// scope has what the identifiers stand for: a slot for a device, or -1 for
// something else. An identifier that it does not have is declared by the
// environment.
type scope map[string]int

const notADevice = -1

func (s scope) with(name string, slot int) scope {
	result := make(scope, len(s)+1)
	for known, slot := range s {
		result[known] = slot
	}
	result[name] = slot
	return result
}

// references finds the variables that a part of the expression has from outside.
// single is false if it speaks of the set or of something that is not a device.
func references(expr ast.Expr, s scope) (free []variable, single bool) {
	single = true
	seen := make(map[string]bool)
	var visit func(e ast.Expr, bound map[string]int)
	all := func(bound map[string]int, exprs ...ast.Expr) {
		for _, e := range exprs {
			visit(e, bound)
		}
	}
	visit = func(e ast.Expr, bound map[string]int) {
		switch e.Kind() {
		case ast.IdentKind:
			name := e.AsIdent()
			if bound[name] > 0 {
				return
			}
			slot, known := s[name]
			switch {
			case !known && name == devicesVariable || known && slot == notADevice:
				single = false
			case known && !seen[name]:
				seen[name] = true
				free = append(free, variable{name, slot})
			}
		case ast.CallKind:
			call := e.AsCall()
			if call.IsMemberFunction() {
				visit(call.Target(), bound)
			}
			all(bound, call.Args()...)
		case ast.SelectKind:
			visit(e.AsSelect().Operand(), bound)
		case ast.ListKind:
			all(bound, e.AsList().Elements()...)
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				all(bound, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
			}
		case ast.StructKind:
			for _, field := range e.AsStruct().Fields() {
				visit(field.AsStructField().Value(), bound)
			}
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			all(bound, c.IterRange(), c.AccuInit())
			names := []string{c.IterVar(), c.IterVar2(), c.AccuVar()}
			for _, name := range names {
				bound[name]++
			}
			all(bound, c.LoopCondition(), c.LoopStep(), c.Result())
			for _, name := range names {
				bound[name]--
			}
		}
	}
	visit(expr, make(map[string]int))
	return free, single
}

// tabulated is the part as a leaf, nil if it can't be one.
func (a *analyzer) tabulated(expr ast.Expr, s scope) *leaf {
	free, single := references(expr, s)
	if !single {
		return nil
	}
	return a.newLeaf(expr, free)
}

// condition reads a part of type bool.
func (a *analyzer) condition(expr ast.Expr, s scope) condition {
	if l := a.tabulated(expr, s); l != nil {
		return l
	}
	switch expr.Kind() {
	case ast.CallKind:
		return a.conditionCall(expr.AsCall(), s)
	case ast.ComprehensionKind:
		return a.quantifier(expr.AsComprehension(), s)
	default:
		return open{}
	}
}

func (a *analyzer) conditionCall(call ast.CallExpr, s scope) condition {
	args := call.Args()
	switch function := call.FunctionName(); function {
	case operators.LogicalAnd, operators.LogicalOr:
		return a.logical(function, args, s)
	case operators.LogicalNot:
		return newNot(a.condition(args[0], s))
	case operators.Conditional:
		return conditional{a.condition(args[0], s), a.condition(args[1], s), a.condition(args[2], s)}
	case operators.Equals:
		return a.comparison(equal, args[0], args[1], s)
	case operators.NotEquals:
		return newNot(a.comparison(equal, args[0], args[1], s))
	case operators.Less:
		return a.comparison(less, args[0], args[1], s)
	case operators.LessEquals:
		return a.comparison(lessOrEqual, args[0], args[1], s)
	case operators.Greater:
		return a.comparison(less, args[1], args[0], s)
	case operators.GreaterEquals:
		return a.comparison(lessOrEqual, args[1], args[0], s)
	default:
		return open{}
	}
}

// logical folds the arguments: the parser joins long chains of && and ||.
func (a *analyzer) logical(function string, args []ast.Expr, s scope) condition {
	result := a.condition(args[0], s)
	for _, arg := range args[1:] {
		switch right := a.condition(arg, s); {
		case isOpen(result) && isOpen(right):
		case function == operators.LogicalAnd:
			result = and{result, right}
		default:
			result = or{result, right}
		}
	}
	return result
}

// comparison of numbers; those of other types are open.
func (a *analyzer) comparison(r relation, left, right ast.Expr, s scope) condition {
	c := comparison{r, a.quantity(left, s), a.quantity(right, s)}
	if isOpen(c.left) || isOpen(c.right) {
		return open{}
	}
	l, constantLeft := c.left.(constant)
	m, constantRight := c.right.(constant)
	if constantLeft && constantRight {
		return verdict{compare(r, exactly(l.value), exactly(m.value))}
	}
	return c
}

// quantity reads a part of type int.
func (a *analyzer) quantity(expr ast.Expr, s scope) quantity {
	if expr.Kind() == ast.LiteralKind {
		if value, ok := expr.AsLiteral().(types.Int); ok {
			return constant{int64(value)}
		}
	}
	if l := a.tabulated(expr, s); l != nil {
		return l
	}
	if expr.Kind() != ast.CallKind {
		return open{}
	}
	call := expr.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.Add:
		return arithmetic{add, a.quantity(args[0], s), a.quantity(args[1], s)}
	case operators.Subtract:
		return arithmetic{subtract, a.quantity(args[0], s), a.quantity(args[1], s)}
	case operators.Multiply:
		return arithmetic{multiply, a.quantity(args[0], s), a.quantity(args[1], s)}
	case operators.Conditional:
		return conditionalNumber{a.condition(args[0], s), a.quantity(args[1], s), a.quantity(args[2], s)}
	case "size":
		return a.size(operand(call), s)
	case "max", "min", "sum":
		return a.aggregate(call, s)
	default:
		return open{}
	}
}

// operand is what a function of one operand is applied to, in either style.
func operand(call ast.CallExpr) ast.Expr {
	if call.IsMemberFunction() {
		return call.Target()
	}
	if args := call.Args(); len(args) == 1 {
		return args[0]
	}
	return nil
}

func (a *analyzer) size(of ast.Expr, s scope) quantity {
	if of == nil {
		return open{}
	}
	if list, ok := a.deviceList(of, s); ok {
		if _, all := list.(allDevices); all {
			return constant{int64(a.setSize)}
		}
		return size{list}
	}
	if of.Kind() != ast.CallKind || of.AsCall().FunctionName() != "distinct" || !of.AsCall().IsMemberFunction() {
		return open{}
	}
	m, ok := a.mapped(of.AsCall().Target(), s)
	if !ok {
		return open{}
	}
	value, tabulated := m.value.(*leaf)
	if _, all := m.list.(allDevices); !all || !tabulated {
		return open{}
	}
	if len(value.slots) != 1 || value.slots[0] != m.slot {
		return open{}
	}
	d := distinctSize{m.slot, value}
	a.distincts = append(a.distincts, d)
	return d
}

func (a *analyzer) aggregate(call ast.CallExpr, s scope) quantity {
	if !call.IsMemberFunction() || len(call.Args()) > 0 {
		return open{}
	}
	m, ok := a.mapped(call.Target(), s)
	if !ok {
		return open{}
	}
	switch call.FunctionName() {
	case "max":
		return greatest{mapped: m}
	case "min":
		return greatest{mapped: m, negated: true}
	}
	// The sum of an empty list has no type that is known here.
	if _, all := m.list.(allDevices); !all {
		return open{}
	}
	return total{m}
}
