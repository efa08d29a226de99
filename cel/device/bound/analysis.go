// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"
	"unsafe"

	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/device/bound/read"
	"github.com/celset/celset/cel/device/costbound"
	"github.com/celset/celset/cel/tree"
)

// An Outcome is the set of results that an expression may have.
type Outcome = outcome.Outcome

// The results of an expression. Open includes all of them.
const (
	True  = outcome.True
	False = outcome.False
	Error = outcome.Error
	Open  = outcome.Open
)

// A Partial is a set that is partly chosen.
type Partial = propagate.Partial

// A Part is a set of devices that is part of every complete set with a fixed number of devices.
type Part = propagate.Part

// Effort is the amount of work for detecting that a partial set is infeasible.
type Effort = propagate.Effort

// The efforts.
const (
	Quick    = propagate.Quick
	Thorough = propagate.Thorough
)

// An Analysis holds the conditions of an expression for sets of one size. It is safe for concurrent use.
type Analysis struct {
	// expression was read for sets of this size. If ascending is set, their devices are in the order of the tables.
	expression *device.Expression
	size       int
	ascending  bool
	problem    propagate.Problem
	// within means that no evaluation exceeds the cost limit on any devices that the API allows. Most expressions stay far below
	// the limit.
	within bool
	// bytes is the approximate memory of the analysis with all leaves planned.
	bytes int
}

// Analyze reads an expression for sets of the given size. Parts that it does not understand are open.
func Analyze(expression *device.Expression, size int) *Analysis {
	return analyze(&Analysis{expression: expression, size: size}, expression.AST().Expr())
}

// AnalyzeAscending is like Analyze for sets whose devices are in the order of the tables, such as the devices of one request.
// Then fewer devices can be devices[0].
func AnalyzeAscending(expression *device.Expression, size int) *Analysis {
	return analyze(&Analysis{expression: expression, size: size, ascending: true}, expression.AST().Expr())
}

// analyze reads all or the first conjuncts of the expression.
func analyze(a *Analysis, conjuncts ...ast.Expr) *Analysis {
	a.problem, a.bytes = read.Conjuncts(a.expression, a.size, a.options(), conjuncts...)
	a.within = a.problem.Usable && a.isWithin(a.expression.LargestSizes())
	return a
}

// parts is the maximum number of parts to read. Tests lower it.
var parts = read.MaxParts

func (a *Analysis) options() read.Options { return read.Options{Ascending: a.ascending, Parts: parts} }

// Understood reports whether the bounds may be better than open.
func (a *Analysis) Understood() bool {
	if a.problem.Goal != nil {
		return a.problem.Usable && !propagate.IsOpen(a.problem.Goal)
	}
	return a.problem.Usable && (len(a.problem.Conjuncts) == 0 || slices.ContainsFunc(a.problem.Conjuncts, func(c propagate.Condition) bool { return !propagate.IsOpen(c) }))
}

// Open returns the number of conjuncts without bounds.
func (a *Analysis) Open() int {
	if !a.problem.Usable {
		return max(1, len(a.problem.Conjuncts))
	}
	count := 0
	for _, c := range a.problem.Conjuncts {
		if propagate.IsOpen(c) {
			count++
		}
	}
	return count
}

// Size returns the approximate memory of the analysis in bytes, without the expression.
func (a *Analysis) Size() int { return int(unsafe.Sizeof(*a)) + a.bytes }

// Tabulate creates the tables for the given devices. CEL is called later.
func (a *Analysis) Tabulate(devices []*device.Device) *Tables {
	t := &Tables{problem: &a.problem}
	t.Init(t.problem, devices)
	return t
}

// Fits reports whether the initial tables for this number of devices are small enough. Entries for pairs are added on demand.
// If they take too much memory, all later bounds are open ([Bounds.Exhausted]).
func (a *Analysis) Fits(devices int) bool { return a.problem.Fits(devices) }

// An evaluation that exceeds its cost limit fails, even if the result is already certain. Bounds ignore costs, so they are
// valid only if no evaluation can reach the limit. The same holds for parts that may abort (propagate.Guard). But an evaluation
// takes conjuncts in order and ends at the first false one. So the first conjuncts have valid bounds even if later conjuncts
// may reach the limit.

func (a *Analysis) isWithin(sizes device.Sizes) bool {
	return costbound.Of(a.expression, a.size, sizes).Within(a.expression.Limits())
}

// Affordable reports whether no evaluation on a set of the devices exceeds the cost limit. Bounds of the whole expression are
// valid only then.
func (a *Analysis) Affordable(devices []*device.Device) bool {
	return a.problem.Usable && (a.within || a.isWithin(device.SizesOf(devices)))
}

// Leading returns the analysis if it is affordable for sets of the devices. Otherwise it returns an analysis of the longest
// affordable sequence of first conjuncts, and the other conjuncts are open. If a set makes one of the first conjuncts false,
// CEL rejects the set before it evaluates the others. The result is nil if the conjuncts are not understood.
func (a *Analysis) Leading(devices []*device.Device) *Analysis {
	if a.Affordable(devices) {
		if a.Understood() {
			return a
		}
		return nil
	}
	if a.problem.Goal != nil {
		return nil
	}
	conjuncts := tree.Conjuncts(a.expression.AST().Expr())
	affordable := costbound.Leading(a.expression, a.size, device.SizesOf(devices), a.expression.Limits())
	leading := analyze(&Analysis{expression: a.expression, size: a.size, ascending: a.ascending}, conjuncts[:min(affordable, len(conjuncts)-1)]...)
	if !leading.Understood() || len(leading.problem.Conjuncts) == 0 {
		return nil
	}
	leading.problem.Conjuncts = append(leading.problem.Conjuncts, propagate.Open{})
	leading.problem.Provable, leading.within = false, true
	return leading
}
