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

// Program is a compiled expression that evaluates to bool. It is safe for
// concurrent use.
type Program struct {
	environment *Environment
	expression  string
	ast         *cel.Ast
	program     cel.Program
	// loops tells that there is something to interrupt.
	loops bool
}

// Expression returns the source text.
func (p *Program) Expression() string { return p.expression }

// CostLimit is what one evaluation may cost, in CEL cost units.
func (p *Program) CostLimit() uint64 { return p.environment.costLimit }

// Evaluate returns the verdict on one input and charges the budget with what it
// cost. Every error is an [*Error]. When ctx ends, the error wraps its cause and
// its error.
func (p *Program) Evaluate(ctx context.Context, input cel.Activation, budget *Budget) (bool, error) {
	value, details, err := p.run(ctx, input)
	cost := actualCost(details)
	verdict, failure := false, budget.charge(cost, p.environment.advice)
	switch {
	case err != nil:
		failure = p.evaluationError(value, err, interruption(ctx, err))
	case failure == nil:
		result, ok := value.(types.Bool)
		if !ok {
			failure = p.typeError(value.Type().TypeName())
		}
		verdict = bool(result)
	}
	p.environment.observer.ObserveEvaluation(p.environment.name, cost, failure)
	if failure != nil {
		return false, failure
	}
	return verdict, nil
}

// run evaluates, and measures how long that takes if somebody wants to know.
func (p *Program) run(ctx context.Context, input cel.Activation) (ref.Val, *cel.EvalDetails, error) {
	timer := p.environment.timer
	if timer == nil {
		return p.eval(ctx, input)
	}
	start := timer.Now()
	value, details, err := p.eval(ctx, input)
	timer.ObserveDuration(p.environment.name, timer.Now().Sub(start))
	return value, details, err
}

// eval leaves the context out where nothing would look at it: an evaluation without a
// macro is over before a derived context is made.
func (p *Program) eval(ctx context.Context, input cel.Activation) (ref.Val, *cel.EvalDetails, error) {
	if p.loops {
		return p.program.ContextEval(ctx, input)
	}
	return p.program.Eval(input)
}

// loops tells whether an expression goes through a list or a map.
func loops(of *cel.Ast) bool {
	return len(ast.MatchDescendants(ast.NavigateAST(of.NativeRep()), ast.KindMatcher(ast.ComprehensionKind))) > 0
}

func actualCost(details *cel.EvalDetails) uint64 {
	if details == nil || details.ActualCost() == nil {
		return 0
	}
	return *details.ActualCost()
}

func (p *Program) typeError(got string) *Error {
	return positioned(ReasonType, p.ast.Source(), p.location(nil),
		fmt.Sprintf("the expression must return bool, it returned %s", got))
}

func (p *Program) costLimitError() *Error {
	return positioned(ReasonCostLimit, p.ast.Source(), p.location(nil),
		fmt.Sprintf("one evaluation exceeds the cost limit of %d: %s", p.environment.costLimit, p.environment.advice.Evaluation))
}

// OutputType is the type of the result as far as it is known before an evaluation: bool,
// or a type that may still turn out to be one.
func (p *Program) OutputType() *cel.Type { return p.ast.OutputType() }
