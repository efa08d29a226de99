// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
)

// Analyze reads an expression for sets of the given size. What it does not
// understand is open.
func Analyze(expression *device.Expression, size int) *Analysis {
	return newAnalyzer(expression, size).analyze(expression.AST().Expr())
}

// AnalyzeAscending is Analyze for sets whose devices are in the order of the tables, as those of
// one request are. More is known of devices[0] then.
func AnalyzeAscending(expression *device.Expression, size int) *Analysis {
	a := newAnalyzer(expression, size)
	a.ascending = true
	return a.analyze(expression.AST().Expr())
}

func newAnalyzer(expression *device.Expression, size int) *analyzer {
	a := &analyzer{
		expression:     expression,
		setSize:        size,
		known:          make(map[string]*leaf),
		predicateIndex: make(map[string]int),
	}
	a.normal = newNormalizer(expression, guarding{a}.guardOperand)
	return a
}

// analyze reads conjuncts of the expression: all, or the first of them.
func (a *analyzer) analyze(leading ...ast.Expr) *Analysis {
	result := &Analysis{expression: a.expression, size: a.setSize, ascending: a.ascending}
	for _, expr := range leading {
		a.normal.require(expr, scope{})
		for _, conjunct := range a.conjuncts(expr) {
			c := a.conjunct(conjunct)
			if v, constant := c.(verdict); constant && v.outcome == True {
				continue
			}
			result.conjuncts = a.withConjunct(result.conjuncts, c)
		}
	}
	if !a.finish(result) {
		return &Analysis{expression: a.expression, size: a.setSize, ascending: a.ascending}
	}
	result.provable = !slices.ContainsFunc(result.conjuncts, func(c condition) bool { return isOpen(c) })
	return result
}

// join makes one constraint of two that must both hold, on the bounding box or on a sum. It is false for anything else.
func (a *analyzer) join(left, right condition) (condition, bool) {
	if joined, ok := a.joinBoxes(left, right); ok {
		return joined, true
	}
	if l, ok := left.(assuming); ok {
		if r, both := right.(assuming); both {
			if then, ok := a.join(l.then, r.then); ok {
				return assuming{together(l.premise, r.premise), then, and{l.general, r.general}}, true
			}
		}
		if then, ok := a.join(l.then, right); ok {
			return assuming{l.premise, then, and{l.general, right}}, true
		}
		return nil, false
	}
	if r, ok := right.(assuming); ok {
		if then, ok := a.join(left, r.then); ok {
			return assuming{r.premise, then, and{left, r.general}}, true
		}
		return nil, false
	}
	if joined, ok := joinSpacings(left, right); ok {
		return joined, true
	}
	return joinSums(left, right)
}

// withConjunct adds a conjunct: what it says of the bounding box or of a sum is joined with what others say of it.
func (a *analyzer) withConjunct(conjuncts []condition, c condition) []condition {
	for i := range conjuncts {
		if joined, ok := a.join(conjuncts[i], c); ok {
			conjuncts[i] = joined
			return conjuncts
		}
	}
	return append(conjuncts, c)
}

// finish enters what was planned for the conditions that were read. It is false if something in
// them may abort that has no guard: nothing can be told then.
func (a *analyzer) finish(result *Analysis) bool {
	if a.normal.unguarded.Len() > 0 {
		return false
	}
	result.usable = true
	result.leaves, result.predicates, result.boxes, result.sums = a.leaves, a.predicates, a.boxes, a.sums
	result.slots, result.guards = a.slots, a.guards
	result.bytes = a.bytes()
	result.within = result.isWithin(a.expression.LargestSizes())
	return true
}

// What an analysis takes, measured: for each node of the syntax tree that is read or was made,
// and for each leaf that is planned.
const (
	readBytes     = 60
	madeBytes     = 300
	plannedBytes  = 500
	plannedByNode = 100
)

func (a *analyzer) bytes() int {
	bytes := readBytes*nodesOf(a.normal.write.AST().Expr()) + madeBytes*a.normal.copies
	for _, l := range a.leaves {
		bytes += plannedBytes + plannedByNode*l.nodes
	}
	return bytes
}

// nodesOf is the number of nodes of a syntax tree.
func nodesOf(expr ast.Expr) int {
	nodes := 0
	ast.PostOrderVisit(expr, ast.NewExprVisitor(func(ast.Expr) { nodes++ }))
	return nodes
}

// conjuncts splits at the top-level "&&".
func (a *analyzer) conjuncts(expr ast.Expr) []ast.Expr {
	expr = a.normal.reduce(expr, scope{})
	if _, single := references(expr, scope{}); !single && expr.Kind() == ast.ComprehensionKind {
		if result, ok := a.normal.unrolled(expr.AsComprehension()); ok {
			a.normal.traced(unrollConjunct, expr, result)
			a.normal.replace(expr, result, scope{})
			return a.conjuncts(result)
		}
	}
	if !tree.IsCall(expr, operators.LogicalAnd) {
		return []ast.Expr{expr}
	}
	var result []ast.Expr
	for _, arg := range expr.AsCall().Args() {
		result = append(result, a.conjuncts(arg)...)
	}
	return result
}

type analyzer struct {
	expression *device.Expression
	setSize    int
	// ascending: the devices of a set are in the order of the tables.
	ascending bool
	leaves    []*leaf
	// known are the leaves by their shape.
	known map[string]*leaf
	// predicates are those that have a table, predicateIndex has their place by their shape.
	predicates     []tabulated
	predicateIndex map[string]int
	// read is what the predicate that is being read takes from devices, nil outside of one.
	read  *tabulated
	boxes int
	sums  int
	slots int
	// readings is how many parts were read.
	readings int
	// normal writes parts in the one way in which they are read.
	normal *normalizer
	guards []guard
}

// maxReadings is how many parts of an expression are read, with those that rules write anew: more than expressions have, and
// where rules in rules write parts out several times an end. What is not read is open.
// Tests lower it.
var maxReadings = 1 << 13

func (a *analyzer) mayRead() bool {
	a.readings++
	return a.readings <= maxReadings
}

// condition reads a part of type bool.
func (a *analyzer) condition(expr ast.Expr, s scope) condition {
	if !a.mayRead() {
		return open{}
	}
	if free, single := references(expr, s); single && (len(free) <= maxArity || !isOperation(expr)) {
		return a.newPredicate(expr, free, s)
	}
	if reduced := a.normal.reduce(expr, s); reduced != expr {
		return a.condition(reduced, s)
	}
	if left, right, ok := sameness(expr); ok {
		return a.comparison(expr, equal, left, right, s)
	}
	if rewritten, ok := a.normal.rewrite(expr, s); ok {
		return a.condition(rewritten, s)
	}
	if expr.Kind() == ast.ComprehensionKind {
		return a.quantifier(expr, s)
	}
	if result, ok := readCondition(a, expr, s); ok {
		return result
	}
	return a.relation(expr, s)
}

// newPredicate reads a part that does not speak of the set.
func (a *analyzer) newPredicate(expr ast.Expr, free []variable, s scope) condition {
	before := a.read
	a.read = &tabulated{free: free}
	holds := local{a}.condition(expr, s)
	read := a.read
	a.read = before
	if len(free) == 0 || len(free) > maxArity {
		return holds
	}
	return a.tabulated("predicate", expr, holds, *read)
}

// tabulated is a condition on the devices of the variables, which shares its table with those of the
// same kind that differ in the names of variables only.
func (a *analyzer) tabulated(kind string, expr ast.Expr, holds condition, t tabulated) *predicate {
	key := kind + " " + shapeOf(expr, t.free)
	index, known := a.predicateIndex[key]
	if !known {
		index = len(a.predicates)
		a.predicates = append(a.predicates, t)
		a.predicateIndex[key] = index
	}
	return &predicate{holds: holds, slots: slotsOf(t.free), index: index}
}

func (a *analyzer) newAnd(left, right condition) condition {
	switch {
	case isOpen(left) && isOpen(right):
		return open{}
	case isVerdict(left, True), isVerdict(right, False):
		return right
	case isVerdict(right, True), isVerdict(left, False):
		return left
	}
	if joined, ok := a.join(left, right); ok {
		return joined
	}
	return and{left, right}
}

func (a *analyzer) newOr(left, right condition) condition {
	switch {
	case isOpen(left) && isOpen(right):
		return open{}
	case isVerdict(left, False), isVerdict(right, True):
		return right
	case isVerdict(right, False), isVerdict(left, True):
		return left
	}
	if simpler, ok := withoutFailure(left, right); ok {
		return simpler
	}
	return or{left, right}
}

// comparison of numbers or bools; those of other types are open.
func (a *analyzer) comparison(_ ast.Expr, r relation, left, right ast.Expr, s scope) condition {
	if r == equal {
		if same, ok := a.sortedComparison(left, right, s); ok {
			return same
		}
		if only, ok := a.onlyValue(left, right, s); ok {
			return only
		}
	}
	if r == equal && (a.normal.isBool(left) || a.normal.isBool(right)) {
		return newBiconditional(a.condition(left, s), a.condition(right, s))
	}
	c := comparison{r, a.quantity(left, s), a.quantity(right, s)}
	if isOpen(c.left) || isOpen(c.right) {
		if same, ok := a.oneValue(c, left, right, s); ok {
			return same
		}
		return open{}
	}
	l, constantLeft := c.left.(constant)
	m, constantRight := c.right.(constant)
	var is condition = c
	switch {
	case constantLeft && constantRight:
		return verdict{compare(r, exactly(l.value), exactly(m.value))}
	case constantRight:
		is = a.withLimits(c, c.left, limitsOf(r, m.value, false))
	case constantLeft:
		is = a.withLimits(c, c.right, limitsOf(r, l.value, true))
	}
	if _, asWritten := is.(comparison); !asWritten {
		return is
	}
	if linear, ok := a.linearComparison(c); ok {
		return linear
	}
	return c
}

// quantity reads a part of type int.
func (a *analyzer) quantity(expr ast.Expr, s scope) quantity {
	if !a.mayRead() {
		return open{}
	}
	if value, ok := tree.Literal[types.Int](expr); ok {
		return constant{int64(value)}
	}
	if _, single := references(expr, s); single {
		return local{a}.quantity(expr, s)
	}
	if reduced := a.normal.reduce(expr, s); reduced != expr {
		return a.quantity(reduced, s)
	}
	if expr.Kind() != ast.CallKind {
		return open{}
	}
	call := expr.AsCall()
	if result, ok := readQuantity(a, call, s); ok {
		return result
	}
	switch call.FunctionName() {
	case operators.Negate:
		return newArithmetic(subtraction, constant{0}, a.quantity(call.Args()[0], s))
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
	if values, ok := a.mapped(of, s); ok {
		return size{valued{values}}
	}
	if sum, ok := a.normal.countOfConstants(a.normal.reduce(of, s)); ok {
		a.normal.traced(unrollCount, of, sum)
		a.normal.replace(of, sum, s)
		return a.quantity(sum, s)
	}
	if !tree.IsCall(of, "distinct") || !of.AsCall().IsMemberFunction() {
		return open{}
	}
	m, ok := a.mapped(of.AsCall().Target(), s)
	if !ok {
		return a.unionSize(of.AsCall().Target(), s)
	}
	return newDistinctSize(m)
}

func (a *analyzer) aggregate(call ast.CallExpr, s scope) quantity {
	if !call.IsMemberFunction() || len(call.Args()) > 0 {
		return open{}
	}
	insignificant := []string{"reverse", "sort", "distinct"}
	if call.FunctionName() == "sum" {
		insignificant = insignificant[:1]
	}
	// Sorting fails if the values are of several types. There are no bounds then.
	list, ok := a.normal.without(call.Target(), s, insignificant...)
	if !ok {
		return open{}
	}
	m, ok := a.mapped(list, s)
	if !ok {
		return open{}
	}
	switch call.FunctionName() {
	case "max":
		return greatest{mapped: m}
	case "min":
		return greatest{mapped: m, negated: true}
	}
	// The sum of an empty list is of the type of its elements: an int, if CEL does not know.
	if _, all := m.list.(allDevices); !all && !a.normal.mayBeInt(m.element) {
		return open{}
	}
	return a.sumOf(m)
}

// sumOf is the sum of a list. That of one for each device that satisfies a condition is the number of these devices.
func (a *analyzer) sumOf(m mapped) quantity {
	choice, ok := m.value.(conditionalNumber)
	if !ok || choice.yes != (constant{1}) || choice.no != (constant{0}) {
		return total{m}
	}
	return size{filtered{m.list, m.slot, choice.when}}
}
