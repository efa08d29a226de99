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

// Outcome is the set of results that an expression may have.
type Outcome = outcome.Outcome

// The results of an expression, and all of them.
const (
	True  = outcome.True
	False = outcome.False
	Error = outcome.Error
	Open  = outcome.Open
)

// Partial is a set of which a part is chosen.
type Partial = propagate.Partial

// Effort is how much is done to find out that a partial set is infeasible.
type Effort = propagate.Effort

// The efforts.
const (
	Quick    = propagate.Quick
	Thorough = propagate.Thorough
)

// An Analysis has the conditions that an expression was read as, for sets of one size. It is
// safe for concurrent use.
type Analysis struct {
	// expression was read for sets of the size, whose devices are in the order of the tables or in any order.
	expression *device.Expression
	size       int
	ascending  bool
	problem    propagate.Problem
	// within: no evaluation on devices as the API allows them crosses the limit of its cost.
	// Most expressions are far from it.
	within bool
	// bytes is about what all this takes, also when all leaves are planned.
	bytes int
}

// Analyze reads an expression for sets of the given size. What it does not
// understand is open.
func Analyze(expression *device.Expression, size int) *Analysis {
	return analyze(&Analysis{expression: expression, size: size}, expression.AST().Expr())
}

// AnalyzeAscending is Analyze for sets whose devices are in the order of the tables, as those of
// one request are. More is known of devices[0] then.
func AnalyzeAscending(expression *device.Expression, size int) *Analysis {
	return analyze(&Analysis{expression: expression, size: size, ascending: true}, expression.AST().Expr())
}

// analyze reads conjuncts of the expression: all, or the first of them.
func analyze(a *Analysis, conjuncts ...ast.Expr) *Analysis {
	a.problem, a.bytes = read.Conjuncts(a.expression, a.size, a.options(), conjuncts...)
	a.within = a.problem.Usable && a.isWithin(a.expression.LargestSizes())
	return a
}

// parts is the number of parts of an expression that are read. Tests lower it.
var parts = read.MaxParts

func (a *Analysis) options() read.Options { return read.Options{Ascending: a.ascending, Parts: parts} }

// Understood reports whether bounds can tell anything at all.
func (a *Analysis) Understood() bool {
	if a.problem.Goal != nil {
		return a.problem.Usable && !propagate.IsOpen(a.problem.Goal)
	}
	return a.problem.Usable && (len(a.problem.Conjuncts) == 0 || slices.ContainsFunc(a.problem.Conjuncts, func(c propagate.Condition) bool { return !propagate.IsOpen(c) }))
}

// Open counts the conjuncts about which bounds can tell nothing.
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

// Size is about how many bytes of memory the analysis takes, without the expression.
func (a *Analysis) Size() int { return int(unsafe.Sizeof(*a)) + a.bytes }

// Tabulate prepares the tables for the given devices. CEL is asked later.
func (a *Analysis) Tabulate(devices []*device.Device) *Tables {
	t := &Tables{problem: &a.problem}
	t.Init(t.problem, devices)
	return t
}

// Fits reports whether the tables for that many devices are small enough to be begun. What is said of pairs is made as
// it is asked for, and bounds are exhausted when it takes too much.
func (a *Analysis) Fits(devices int) bool { return a.problem.Fits(devices) }

// An evaluation that crosses the limit of its cost fails, whatever the expression says of
// the set. Bounds know nothing of costs, so they hold only where no evaluation can come to
// that. The same is so of what may abort (propagate.Guard). But an evaluation goes through conjuncts from the
// first to the last, and ends with the first that is false: what stands behind it is never met.

func (a *Analysis) isWithin(sizes device.Sizes) bool {
	return costbound.Of(a.expression, a.size, sizes).Within(a.expression.Limits())
}

// Affordable reports whether no evaluation on some of the devices crosses the limit for one.
// Bounds of the whole expression may only be asked for if that is so.
func (a *Analysis) Affordable(devices []*device.Device) bool {
	return a.problem.Usable && (a.within || a.isWithin(device.SizesOf(devices)))
}

// Leading returns the analysis if it is affordable for some of the devices, otherwise one of so many
// of the first conjuncts that it is: a set for which one of them is false is refused before others are
// evaluated. The rest is open. nil if nothing is understood of them.
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
