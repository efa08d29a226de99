// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Bounds rely on "false && error" being false. There are errors that CEL does not
// absorb: functions of its list extension panic when an argument has failed, and
// the whole evaluation fails then, whatever stands beside it. So an expression has
// bounds only if all functions in it are known to fail as they should.
//
// distinct is the one of those functions that set expressions are likely to use.
// It is allowed where its argument can be checked not to fail (distinctSize).

var absorbed = sets.New(
	operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
	operators.Index, operators.OptIndex, operators.OptSelect, operators.In, operators.OldIn,
	operators.NotStrictlyFalse,
	"size", "max", "min", "sum",
	"startsWith", "endsWith", "contains", "matches",
	"int", "string", "double", "bool", "dyn",
	"orValue", "hasValue",
)

// isAbsorbed tells whether all functions in the expression fail as they should.
// The calls of distinct are counted.
func isAbsorbed(expr ast.Expr) (ok bool, distinct int) {
	ok = true
	ast.PreOrderVisit(expr, ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case e.Kind() == ast.StructKind:
			ok = false
		case e.Kind() != ast.CallKind:
		case e.AsCall().FunctionName() == "distinct":
			distinct++
		case !absorbed.Has(e.AsCall().FunctionName()):
			ok = false
		}
	}))
	return ok, distinct
}

// mayFailUnabsorbed tells whether an argument of distinct may fail for a device
// that is or may come into the set.
func (s *state) mayFailUnabsorbed() bool {
	for _, d := range s.tables.distincts {
		failed := false
		look := func(i int) bool {
			s.slots[d.slot] = i
			failed = d.value.bound(s) == Error
			return !failed
		}
		s.Chosen.each(look)
		if !failed {
			s.Possible.each(look)
		}
		if failed {
			return true
		}
	}
	return s.aborted || s.err != nil
}
