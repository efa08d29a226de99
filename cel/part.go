// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// AST is the checked expression. It must not be modified.
func (p *Program) AST() *ast.AST { return p.ast.NativeRep() }

// Part is a part of an expression that is evaluated by itself, with values for
// the variables that it does not declare. It is safe for concurrent use.
type Part struct {
	program cel.Program
}

// Part plans a part of the program. expr must be taken from its AST.
func (p *Program) Part(expr ast.Expr) (*Part, error) {
	whole := p.AST()
	checked := ast.NewCheckedAST(ast.NewAST(expr, whole.SourceInfo()), whole.TypeMap(), whole.ReferenceMap())
	program, err := p.environment.env.PlanProgram(checked, p.environment.programOptions()...)
	if err != nil {
		return nil, fmt.Errorf("plan a part of %q: %w", p.expression, err)
	}
	return &Part{program: program}, nil
}

// Value evaluates the part. Whatever fails becomes an error value, as it would be
// for the rest of the expression.
func (p *Part) Value(ctx context.Context, input cel.Activation) ref.Val {
	value, _, err := p.program.ContextEval(ctx, input)
	if err != nil {
		return types.WrapErr(err)
	}
	return value
}
