// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package costbound bounds what one evaluation of an expression over "devices" costs, so
// that it can be told without an evaluation that none crosses the limit for one:
//
//	if costbound.Of(expression, 4, device.LargestSizes()).Within(expression.Limits()) {
//		// No evaluation on four devices ends with that error.
//	}
//
// CEL's own estimate ([device.Expression.EstimateCost]) is for people: it is close, but not
// always above what is charged. It takes what a function makes of long strings to be
// short, flattened lists to be as long as before, and a look into a value of unknown type to
// be free. Here everything that is charged is counted, with the size of the largest value
// that the expression can have made up to there. What is not known to be bounded is
// infinite. So is it with what calls take beside what they are charged ([meter.Load]).
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

// Bound is what no evaluation exceeds. +Inf means that there is no bound.
type Bound struct {
	// Cost is what CEL charges, in CEL cost units.
	Cost float64
	// Load is what the calls of functions take.
	Load meter.Load
	// Heaviest is the call that takes most.
	Heaviest Place
}

// Units is what is charged for an evaluation at most, as [meter.Expense.Units].
func (b Bound) Units() float64 { return max(b.Cost, b.Load.Units()) }

// Within reports whether no evaluation crosses one of the limits.
func (b Bound) Within(limits meter.Limits) bool {
	return b.Units() <= float64(limits.Cost) && b.Load.Bytes <= float64(limits.Bytes)
}

// Of returns what an evaluation on a set of that many devices takes at most, if no value
// of the devices is larger than the sizes.
func Of(expression *device.Expression, devices int, sizes device.Sizes) Bound {
	return newWalker(expression, devices, sizes).bound()
}

// Leading is how many of the first conjuncts of an expression take no more than the limits
// together. An evaluation for which one of them is false ends there.
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

// Place is a call in an expression.
type Place struct {
	// Function is its name as CEL has it.
	Function string
	// Line and Column are counted from 1; zero if they are not known.
	Line, Column int
}

// heaviest is the call that takes most by itself.
type heaviest struct {
	expr ast.Expr
	load meter.Load
}

func (h *heaviest) compare(expr ast.Expr, load meter.Load) {
	if h.expr == nil || load.Nanoseconds > h.load.Nanoseconds || load.Nanoseconds == h.load.Nanoseconds && load.Bytes > h.load.Bytes {
		h.expr, h.load = expr, load
	}
}

func (h *heaviest) at(checked *ast.AST) Place {
	if h.expr == nil {
		return Place{}
	}
	result := Place{Function: h.expr.AsCall().FunctionName()}
	if at := checked.SourceInfo().GetStartLocation(h.expr.ID()); at.Line() > 0 {
		result.Line, result.Column = at.Line(), at.Column()+1
	}
	return result
}

// What a step costs besides calls: a look at a variable, a field or an element may be
// charged as a step of its own.
const (
	identCost  = 1
	selectCost = 2
	indexCost  = 3
)

// textOfScalar is as long as anything that is neither string nor bytes becomes when it is
// converted to a string.
const textOfScalar = 64

// walker goes through an expression in the order in which values are made. So a value that
// is met was made of what was met before.
type walker struct {
	checked *ast.AST
	// variables are the sizes of the values that names stand for; unknown if it can be any.
	variables tree.Scope[float64]
	devices   float64
	// text is the length of the longest string so far, elements of the longest list or map,
	// list of the longest list that an attribute may be.
	text, elements, list float64
	// sizes are those of attributes.
	sizes device.Sizes
	// nested: there may be a value of type dyn that is more than a list of scalars.
	nested bool
	// exponents are computed as they are written, which our own evaluation does not do.
	exponents bool
	// worst is the heaviest call so far.
	worst heaviest
	// growing are the variables that macros append to in place, the innermost last.
	growing []string
}

const unknown = -1

// part is what is told of a part of the expression.
type part struct {
	// cost of evaluating it once, size of its value.
	cost, size float64
	// load of the calls in it.
	load meter.Load
}

// and adds what another part takes.
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

// sizeOf is that of the largest value so far.
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

// made remembers the size of a value that was made.
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

// comprehension is a macro: CEL has no other loops.
func (w *walker) comprehension(e ast.Expr) part {
	c := e.AsComprehension()
	over, first := w.visit(c.IterRange()), w.visit(c.AccuInit())
	over.size = w.elementsOf(c.IterRange(), over.size)
	if over.size == 0 {
		// cel.bind and its like give a value a name.
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

// isEmpty reports whether a value is what macros append to in place: an empty list or map.
func isEmpty(e ast.Expr) bool {
	return tree.IsEmptyList(e) || e.Kind() == ast.MapKind && e.AsMap().Size() == 0
}

// growth is by how much a step of a macro makes a list or map longer.
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

// times has no NaN: nothing times anything is nothing.
func times(x, y float64) float64 {
	if x == 0 || y == 0 {
		return 0
	}
	return x * y
}
