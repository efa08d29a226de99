// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/device"
)

// AnalyzeTraced is Analyze, and tells of each rule that was applied.
func AnalyzeTraced(expression *device.Expression, size int, trace func(rule string, before, after ast.Expr)) *Analysis {
	a := newAnalyzer(expression, size)
	a.normal.trace = trace
	return a.analyze(expression.AST().Expr())
}

// Rules are the names of all rules.
func Rules() []string {
	names := []string{inlineBinding, unrollConjunct, unrollCount, equalLists, compareSorted, compareAll}
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// Absorbed is for the test that enumerates all functions.
var Absorbed = absorbed

// ReadAtMost lowers how many parts of an expression are read until restore is called.
func ReadAtMost(parts int) (restore func()) {
	before := maxReadings
	maxReadings = parts
	return func() { maxReadings = before }
}
