// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package costbound computes upper bounds for the cost of one evaluation of an expression over "devices". With a bound, a
// caller can prove that no evaluation exceeds its limit, without evaluating:
//
//	if costbound.Of(expression, 4, device.LargestSizes()).Within(expression.Limits()) {
//		// No evaluation on four devices ends with that error.
//	}
//
// CEL's own estimate ([device.Expression.EstimateCost]) is made for people. It is close to the real cost, but sometimes below:
// it assumes that functions make short results from long strings, that flattening does not lengthen lists, and that a lookup in
// a value of unknown type is free. This package counts every charge, with the size of the largest value that the expression can
// have created so far. A cost without a proven bound is infinite. Package costbound also bounds the time and memory of calls,
// which CEL's charges don't include ([meter.Load]).
package costbound

import (
	"math"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/meter"
	"github.com/celset/celset/cel/tree"
)

// Bound holds upper bounds for every evaluation. +Inf means that there is no bound.
type Bound struct {
	// Cost is the charge of CEL, in CEL cost units.
	Cost float64
	// Load is the time and memory of the function calls.
	Load meter.Load
	// Heaviest is the call with the greatest load.
	Heaviest Position
}

// Units returns the maximum charge for an evaluation, as [meter.Expense.Units] counts it.
func (b Bound) Units() float64 { return max(b.Cost, b.Load.Units()) }

// Within reports whether every evaluation stays within the limits.
func (b Bound) Within(limits meter.Limits) bool {
	return b.Units() <= float64(limits.Cost) && b.Load.Bytes <= float64(limits.Bytes)
}

// Of returns the bound of an evaluation on a set of the given number of devices. sizes limits the values of the devices.
func Of(expression *device.Expression, devices int, sizes device.Sizes) Bound {
	return newWalker(expression, devices, sizes).bound()
}

// Leading returns the number of first conjuncts whose evaluations together stay within the limits. If one of these conjuncts is
// false, an evaluation stops there and never reaches a costly conjunct.
func Leading(expression *device.Expression, devices int, sizes device.Sizes, limits meter.Limits) int {
	w := newWalker(expression, devices, sizes)
	var all part
	for i, conjunct := range tree.Conjuncts(w.checked.Expr()) {
		if all.and(w.visit(conjunct)); !(Bound{Cost: all.cost, Load: all.load}).Within(limits) {
			return i
		}
	}
	return len(tree.Conjuncts(w.checked.Expr()))
}

func newWalker(expression *device.Expression, devices int, sizes device.Sizes) *walker {
	return &walker{
		checked: expression.AST(), variables: tree.Scope[float64]{}, devices: float64(devices),
		text:     float64(sizes.Text),
		elements: float64(max(sizes.Elements, devices)),
		list:     float64(sizes.List),
		sizes:    sizes,
	}
}

func (w *walker) bound() Bound {
	is := w.visit(w.checked.Expr())
	return Bound{is.cost, is.load, w.worst.at(w.checked)}
}

// Position is the position of a call in an expression.
type Position struct {
	// Function is the name of the function in the syntax tree, such as "@in".
	Function string
	// Line and Column are counted from 1. They are zero if the position is unknown.
	Line, Column int
}

// heaviest is the call with the greatest load, without the loads of its operands.
type heaviest struct {
	expr ast.Expr
	load meter.Load
}

func (h *heaviest) compare(expr ast.Expr, load meter.Load) {
	if h.expr == nil || load.Nanoseconds > h.load.Nanoseconds || load.Nanoseconds == h.load.Nanoseconds && load.Bytes > h.load.Bytes {
		h.expr, h.load = expr, load
	}
}

func (h *heaviest) at(checked *ast.AST) Position {
	if h.expr == nil {
		return Position{}
	}
	result := Position{Function: h.expr.AsCall().FunctionName()}
	if at := checked.SourceInfo().GetStartLocation(h.expr.ID()); at.Line() > 0 {
		result.Line, result.Column = at.Line(), at.Column()+1
	}
	return result
}

// The costs of steps other than calls. CEL may charge each access to a variable, a field or an element as a step.
const (
	identCost  = 1
	selectCost = 2
	indexCost  = 3
)

// textOfScalar is the maximum length of the text of a value that is neither string nor bytes.
const textOfScalar = 64

// walker computes the bound in one walk through the expression, in the order of evaluation:
//
// 1. Visit the operands of a part and add their costs.
// 2. Bound the part's own cost, its load and the size of its value by the sizes of the operands.
// 3. Record this size in text, elements or list. A value of unknown origin is at most as large as these.
// 4. For a macro, multiply the cost of one iteration by the size of the macro's range.
//
// The order matters, because a value can only be created from values that the walker has visited before.
type walker struct {
	checked *ast.AST
	// variables maps the name of a variable to the size of its value, or to unknown if the value can have any size.
	variables tree.Scope[float64]
	devices   float64
	// text is the maximum length of any string so far. elements is the maximum length of any list or map so far. list is the
	// maximum length of a list of type dyn.
	text, elements, list float64
	// sizes has the limits for the values of devices.
	sizes device.Sizes
	// nested means that a value of type dyn may be more than a scalar or a list of scalars.
	nested bool
	// exponents means that Kubernetes evaluates the expression, and computes with quantities of any exponent. celset limits
	// exponents.
	exponents bool
	// worst is the heaviest call so far.
	worst heaviest
	// growing has the accumulators that macros append to in place, the innermost macro's last.
	growing []string
}

const unknown = -1

// part has the bounds of a part of the expression.
type part struct {
	// cost is the cost of one evaluation of the part. size is the size of its value.
	cost, size float64
	// load is the load of the calls in the part.
	load meter.Load
}

// and adds the cost and the load of another part to p.
func (p *part) and(other part) {
	p.cost += other.cost
	p.load = added(p.load, other.load)
}

func added(a, b meter.Load) meter.Load {
	return meter.Load{Nanoseconds: a.Nanoseconds + b.Nanoseconds, Bytes: a.Bytes + b.Bytes}
}

var unbounded = part{math.Inf(1), math.Inf(1), meter.Load{Nanoseconds: math.Inf(1), Bytes: math.Inf(1)}}

func (w *walker) visit(e ast.Expr) part {
	switch e.Kind() {
	case ast.LiteralKind:
		return part{size: w.literal(e)}
	case ast.IdentKind:
		return part{cost: identCost, size: w.variable(e)}
	case ast.SelectKind:
		of := w.visit(e.AsSelect().Operand())
		return part{of.cost + selectCost, w.sizeOfEntry(e), of.load}
	case ast.CallKind:
		return w.call(e)
	case ast.ListKind:
		return w.listLiteral(e)
	case ast.MapKind:
		return w.mapLiteral(e)
	case ast.ComprehensionKind:
		return w.comprehension(e)
	default:
		return unbounded
	}
}

func (w *walker) typeOf(e ast.Expr) *types.Type { return w.checked.GetType(e.ID()) }

// sizeOf returns the maximum size of a value of the type, among all values so far.
func (w *walker) sizeOf(t *types.Type) float64 {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.DurationKind, types.TimestampKind, types.NullTypeKind, types.TypeKind:
		return 1
	case types.StringKind, types.BytesKind:
		return w.text
	case types.ListKind, types.MapKind:
		return w.elements
	default:
		return max(w.text, w.elements)
	}
}

// made records the size of a new value of the type, and returns the size.
func (w *walker) made(t *types.Type, size float64) float64 {
	switch t.Kind() {
	case types.StringKind, types.BytesKind:
		w.text = max(w.text, size)
	case types.ListKind, types.MapKind:
		w.elements = max(w.elements, size)
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind:
	default:
		w.text, w.elements, w.list = max(w.text, size), max(w.elements, size), max(w.list, size)
	}
	return size
}

func (w *walker) literal(e ast.Expr) float64 {
	size := 1
	switch value := e.AsLiteral().(type) {
	case types.String:
		size = len(value)
	case types.Bytes:
		size = len(value)
	}
	return w.made(w.typeOf(e), float64(size))
}

func (w *walker) variable(e ast.Expr) float64 {
	name := e.AsIdent()
	size, declared := w.variables.Lookup(name)
	switch {
	case declared && size != unknown:
		return size
	case !declared && device.IsSet(name):
		return w.devices
	default:
		return w.sizeOf(w.typeOf(e))
	}
}

func (w *walker) listLiteral(e ast.Expr) part {
	result := part{cost: common.ListCreateBaseCost}
	for _, element := range e.AsList().Elements() {
		result.and(w.visit(element))
		w.contains(e, element)
	}
	result.size = w.made(w.typeOf(e), float64(e.AsList().Size()))
	return result
}

func (w *walker) mapLiteral(e ast.Expr) part {
	result := part{cost: common.MapCreateBaseCost}
	for _, entry := range e.AsMap().Entries() {
		key, value := entry.AsMapEntry().Key(), entry.AsMapEntry().Value()
		result.and(w.visit(key))
		result.and(w.visit(value))
		w.contains(e, key)
		w.contains(e, value)
	}
	result.size = w.made(w.typeOf(e), float64(e.AsMap().Size()))
	return result
}

// comprehension returns the bound of a macro's loop. CEL has no other loops.
func (w *walker) comprehension(e ast.Expr) part {
	c := e.AsComprehension()
	over, first := w.visit(c.IterRange()), w.visit(c.AccuInit())
	over.size = w.elementsOf(c.IterRange(), over.size)
	if over.size == 0 {
		// cel.bind and similar macros are loops over an empty list, with the bound value as accumulator.
		w.variables.Declare(c.AccuVar(), first.size)
	} else {
		w.variables.Declare(c.AccuVar(), unknown)
	}
	for _, name := range tree.IterVars(c) {
		w.variables.Declare(name, unknown)
	}
	if isEmpty(c.AccuInit()) {
		w.growing = append(w.growing, c.AccuVar())
		defer func() { w.growing = w.growing[:len(w.growing)-1] }()
	}
	once := w.visit(c.LoopCondition())
	once.and(w.visit(c.LoopStep()))
	w.variables.Forget(tree.IterVars(c)...)
	result := w.visit(c.Result())
	w.variables.Forget(c.AccuVar())
	if kind := c.AccuInit().Kind(); over.size > 0 && (kind == ast.ListKind || kind == ast.MapKind) {
		result.size = w.made(w.typeOf(e), times(over.size, w.growth(c.LoopStep())))
	}
	result.cost += times(over.size, once.cost)
	result.load = added(result.load, meter.Load{Nanoseconds: times(over.size, once.load.Nanoseconds), Bytes: times(over.size, once.load.Bytes)})
	result.and(over)
	result.and(first)
	return result
}

// isEmpty reports whether an expression is an empty list or map literal. Macros append in place to such a literal.
func isEmpty(e ast.Expr) bool {
	return tree.IsEmptyList(e) || e.Kind() == ast.MapKind && e.AsMap().Size() == 0
}

// growth returns the number of elements that one iteration of a macro adds to its list or map.
func (w *walker) growth(step ast.Expr) float64 {
	if step.Kind() != ast.CallKind {
		return 0
	}
	args := step.AsCall().Args()
	switch step.AsCall().FunctionName() {
	case operators.Conditional:
		return max(w.growth(args[1]), w.growth(args[2]))
	case "cel.@mapInsert":
		if len(args) == 2 {
			return w.elements
		}
	case operators.Add:
		if len(args) == 2 && args[1].Kind() == ast.ListKind {
			return float64(args[1].AsList().Size())
		}
		return math.Inf(1)
	}
	return 1
}

// times returns a product. Zero times infinity is zero here, instead of NaN.
func times(x, y float64) float64 {
	if x == 0 || y == 0 {
		return 0
	}
	return x * y
}
