// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"sync"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound/condition"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

func newAnalyzer(expression *device.Expression, size int, o Options) *analyzer {
	a := &analyzer{
		Builder:        &condition.Builder{SetSize: size},
		expression:     expression,
		Options:        o,
		leavesByShape:  make(map[string]*propagate.Leaf),
		predicateIndex: make(map[string]int),
	}
	a.normal = normal.New(expression, guarding{a}.guardOperand)
	a.normal.Trace = o.Trace
	return a
}

// MaxParts limits the parts of an expression that are converted, including parts that rules create. Real expressions have fewer
// parts. The limit stops nested rules that multiply parts.
const MaxParts = 1 << 13

// Options control how an expression is converted to conditions.
type Options struct {
	// Ascending means that the devices of a set are in the order of the tables.
	Ascending bool
	// Parts is the maximum number of parts to convert. Any further parts are open.
	Parts int
	// Trace is called for each applied rule. It may be nil.
	Trace func(rule string, before, after ast.Expr)
}

// Memory of an analysis in bytes, as measured: for each node of the syntax tree that is read or written, and for each prepared
// leaf.
const (
	readBytes     = 60
	madeBytes     = 300
	plannedBytes  = 500
	plannedByNode = 100
)

func (a *analyzer) bytes() int {
	bytes := readBytes*normal.NodesOf(a.normal.Write.AST().Expr()) + madeBytes*a.normal.Copies
	for _, l := range a.leaves {
		bytes += plannedBytes + plannedByNode*l.Nodes
	}
	return bytes
}

type analyzer struct {
	*condition.Builder
	expression *device.Expression
	Options
	leaves []*propagate.Leaf
	// leavesByShape maps the shape of a part (normal.ShapeOf) to its leaf.
	leavesByShape map[string]*propagate.Leaf
	// predicates are the predicates that need a table. predicateIndex maps the shape of a predicate to its index in predicates.
	predicates     []propagate.Tabulated
	predicateIndex map[string]int
	// read records the leaves of the predicate that is being converted. It is nil outside of a predicate.
	read  *propagate.Tabulated
	slots int
	// partsRead is the number of parts converted so far.
	partsRead int
	// normal rewrites parts into the normal form.
	normal *normal.Normalizer
	guards []propagate.Guard
}

func (a *analyzer) mayRead() bool {
	a.partsRead++
	return a.partsRead <= a.Parts
}

// tabulated returns a predicate on the devices of the variables. Two predicates with the same kind and shape share a table.
func (a *analyzer) tabulated(kind string, expr ast.Expr, free []normal.Variable, holds propagate.Condition, t propagate.Tabulated) *propagate.Predicate {
	key := kind + " " + normal.ShapeOf(expr, free)
	index, known := a.predicateIndex[key]
	if !known {
		index = len(a.predicates)
		a.predicates = append(a.predicates, t)
		a.predicateIndex[key] = index
	}
	return &propagate.Predicate{Holds: holds, Slots: t.Slots, Index: index}
}

// newLeaf returns the leaf for a part of the expression. Parts of the same shape share a leaf.
func (a *analyzer) newLeaf(expr ast.Expr, free []normal.Variable) *propagate.Leaf {
	key := normal.ShapeOf(expr, free)
	if known := a.leavesByShape[key]; known != nil {
		guarding{a}.guardLeaf(known, expr)
		return known
	}
	l := &propagate.Leaf{Index: len(a.leaves), Nodes: normal.NodesOf(expr), Part: sync.OnceValue(func() *device.Part {
		part, err := a.expression.Part(a.normal.Write.AST(), expr)
		if err != nil {
			return nil
		}
		return part
	})}
	for _, v := range free {
		l.Names = append(l.Names, v.Name)
	}
	a.leaves = append(a.leaves, l)
	a.leavesByShape[key] = l
	guarding{a}.guardLeaf(l, expr)
	if base, added, ok := addedConstant(expr); ok && len(free) == 1 {
		l.Base, l.Added = a.newLeaf(base, free), added
	}
	return l
}

// addedConstant recognizes "base + 1", "1 + base" and "base - 1", and returns base and the constant.
func addedConstant(expr ast.Expr) (base ast.Expr, added int64, ok bool) {
	if !tree.IsCall(expr, operators.Add, operators.Subtract) {
		return nil, 0, false
	}
	base, constant := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	value, ok := tree.Literal[types.Int](constant)
	if tree.IsCall(expr, operators.Subtract) {
		return base, -int64(value), ok && value > -condition.MaxConstant
	}
	if !ok {
		base = constant
		value, ok = tree.Literal[types.Int](expr.AsCall().Args()[0])
	}
	return base, int64(value), ok
}

func (a *analyzer) valueOf(expr ast.Expr, free []normal.Variable) propagate.Value {
	v := propagate.Value{Leaf: a.newLeaf(expr, free), Slots: slotsOf(free)}
	a.read.Reads(v)
	return v
}

func slotsOf(free []normal.Variable) []int {
	slots := make([]int, len(free))
	for i, v := range free {
		slots[i] = v.Slot
	}
	return slots
}

func (a *analyzer) newSlot() int {
	a.slots++
	return a.slots - 1
}

// operand returns the operand of f(x) or x.f().
func operand(call ast.CallExpr) ast.Expr {
	if call.IsMemberFunction() {
		return call.Target()
	}
	if args := call.Args(); len(args) == 1 {
		return args[0]
	}
	return nil
}

func (a *analyzer) newConditional(when, yes, no propagate.Condition) propagate.Condition {
	return condition.NewConditional(when, yes, no)
}
