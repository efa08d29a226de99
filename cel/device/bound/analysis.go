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

// An Outcome is the set of results that an expression may still have: true, false, or an error.
type Outcome = outcome.Outcome

// The possible results of an expression. Open includes all of them.
const (
	True  = outcome.True
	False = outcome.False
	Error = outcome.Error
	Open  = outcome.Open
)

// A Partial is a partial set: some devices are chosen, and others may be added.
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
	// expression is the analyzed expression, for sets of size devices. If ascending is set, the devices of a set are in the
	// order of the tables.
	expression *device.Expression
	size       int
	ascending  bool
	problem    propagate.Problem
	// within means that no evaluation exceeds the cost limit, for any devices that the API allows. This holds for most
	// expressions, so that Affordable needs no computation.
	within bool
	// bytes is the approximate memory of the analysis once CEL has prepared all leaves.
	bytes int
}

// Analyze analyzes an expression for sets of the given size. Unsupported parts are open: they may have any value.
func Analyze(expression *device.Expression, size int) *Analysis {
	return analyze(&Analysis{expression: expression, size: size}, expression.AST().Expr())
}

// AnalyzeAscending is like Analyze for sets whose devices are in the order of the tables, such as the devices of one request.
// This order gives better bounds, because fewer devices can be devices[0].
func AnalyzeAscending(expression *device.Expression, size int) *Analysis {
	return analyze(&Analysis{expression: expression, size: size, ascending: true}, expression.AST().Expr())
}

// analyze converts the given conjuncts of the expression, all of them or only the first ones.
func analyze(a *Analysis, conjuncts ...ast.Expr) *Analysis {
	a.problem, a.bytes = read.Conjuncts(a.expression, a.size, a.options(), conjuncts...)
	a.within = a.problem.Usable && a.isWithin(a.expression.LargestSizes())
	return a
}

// parts is the maximum number of parts of an expression that are analyzed. Tests lower the limit.
var parts = read.MaxParts

func (a *Analysis) options() read.Options { return read.Options{Ascending: a.ascending, Parts: parts} }

// Understood reports whether bounds can exclude a result. They can't if everything is open.
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

// Tabulate allocates the tables for the given devices. The tables are filled later, on demand.
func (a *Analysis) Tabulate(devices []*device.Device) *Tables {
	t := &Tables{problem: &a.problem}
	t.Init(t.problem, devices)
	return t
}

// Fits reports whether the tables for this number of devices are small enough at first. Entries for pairs are added on demand.
// If these entries take too much memory, all later bounds are open ([Bounds.Exhausted]).
func (a *Analysis) Fits(devices int) bool { return a.problem.Fits(devices) }

// An evaluation that exceeds its cost limit fails, even if the result is already certain. Bounds ignore costs, so bounds of an
// expression are valid only if no evaluation can reach the limit. The same holds for parts that may abort (propagate.Guard).
// But CEL evaluates conjuncts in order and stops at the first false one. So bounds of the first conjuncts are valid even if
// later conjuncts may reach the limit.

func (a *Analysis) isWithin(sizes device.Sizes) bool {
	return costbound.Of(a.expression, a.size, sizes).Within(a.expression.Limits())
}

// Affordable reports whether every evaluation on a set of the devices stays within the cost limit. Otherwise bounds of the
// whole expression are not valid.
func (a *Analysis) Affordable(devices []*device.Device) bool {
	return a.problem.Usable && (a.within || a.isWithin(device.SizesOf(devices)))
}

// Leading returns the analysis itself if it is affordable for sets of the devices. Otherwise it returns an analysis of the
// longest affordable run of first conjuncts. All other conjuncts are open. Rejecting a set is valid then: if a first conjunct
// is false, CEL stops before it evaluates the others. The result is nil if no first conjunct has bounds.
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
