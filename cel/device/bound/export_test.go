// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"

	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/device/bound/read"
)

// AnalyzeTraced is like Analyze and calls trace for each applied rule.
func AnalyzeTraced(expression *device.Expression, size int, trace func(rule string, before, after ast.Expr)) *Analysis {
	a := &Analysis{expression: expression, size: size}
	o := a.options()
	o.Trace = trace
	a.problem, a.bytes = read.Conjuncts(expression, size, o, expression.AST().Expr())
	return a
}

// ReadAtMost limits the number of parts that an analysis reads, until restore is called.
func ReadAtMost(count int) (restore func()) {
	before := parts
	parts = count
	return func() { parts = before }
}

// Propagate propagates the only conjunct and stores the result in p, with required devices as chosen. was is the resulting
// status. changed reports whether propagating again changes anything. ok is false if there are several conjuncts or no bounds.
func (b *Bounds) Propagate(p *Partial) (was string, changed, ok bool) {
	s := &b.state
	if len(s.Conjuncts) != 1 || !s.Begin(*p) {
		return "", false, false
	}
	first := s.Propagate(s.Conjuncts[0])
	p.Left = s.Left
	ok = s.IsSound()
	again := Partial{Chosen: slices.Clone(p.Chosen), Domain: slices.Clone(p.Domain), Left: p.Left}
	if first != propagate.Failed && p.Left >= 0 && s.Begin(again) {
		s.Removed = false
		s.Propagate(s.Conjuncts[0])
		changed = s.Removed
		ok = ok && s.IsSound()
	}
	return [...]string{"Failed", "NoFix", "Fix", "Subsumed"}[first], changed, ok
}
