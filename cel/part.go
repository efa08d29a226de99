// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celset/celset/cel/meter"
)

// AST returns the checked expression. It must not be modified.
func (p *Program) AST() *ast.AST { return p.ast.NativeRep() }

// Part is a part of an expression that is evaluated alone. The caller provides values for its free variables. A Part is safe
// for concurrent use.
type Part struct {
	program *meter.Program
	limits  meter.Limits
}

// Part returns the program of expr, a part of the expression. tree holds the types and references of expr. It is the program's
// AST, or an AST made from it.
func (p *Program) Part(tree *ast.AST, expr ast.Expr) (*Part, error) {
	checked := ast.NewCheckedAST(ast.NewAST(expr, tree.SourceInfo()), tree.TypeMap(), tree.ReferenceMap())
	program, err := p.environment.planner.Plan(checked, p.environment.constants == earlyConstants)
	if err != nil {
		return nil, fmt.Errorf("plan a part of %q: %w", p.expression, err)
	}
	return &Part{program, p.environment.limits}, nil
}

// Value evaluates the part and charges the budget. A failure that the rest of the expression may absorb ("false && failure" is
// false) is returned as an error value. Any other failure is an [*Error]. With [ReasonInterrupted] or [ReasonBudget], the part
// could not be evaluated now. With any other reason, the failure would abort the evaluation of the whole expression.
//
// Value checks ctx before the evaluation, because evaluating a part is too short to check ctx meanwhile.
func (p *Part) Value(ctx context.Context, input cel.Activation, budget *Budget) (ref.Val, error) {
	if cause := ContextError(ctx); cause != nil {
		return nil, interrupted(cause)
	}
	value, expense, err := p.program.Eval(ctx, input, p.limits)
	if failure := budget.Charge(expense.Units()); failure != nil {
		return nil, failure
	}
	if err == nil {
		return value, nil
	}
	if _, ended := errors.AsType[*meter.InterruptedError](err); ended {
		return nil, interrupted(ContextError(ctx))
	}
	if isAbort(err) {
		return nil, &Error{Reason: ReasonRuntime, Message: err.Error(), err: err}
	}
	return types.WrapErr(err), nil
}

func interrupted(cause error) *Error {
	return &Error{Reason: ReasonInterrupted, Message: cause.Error(), err: cause}
}

// isAbort reports whether CEL aborted the evaluation: because of a limit, or because of a panic that became an error.
func isAbort(err error) bool {
	_, isLimit := errors.AsType[*meter.LimitError](err)
	return isLimit || strings.Contains(err.Error(), "internal error")
}
