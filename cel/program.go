// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celset/celset/cel/meter"
)

// Program is a compiled expression. It evaluates to bool, to int if [Environment.CompileInt] compiled it, or to any type if
// [Environment.CompileAny] did. It is safe for concurrent use.
type Program struct {
	environment *Environment
	result      resultType
	expression  string
	ast         *cel.Ast
	program     *meter.Program
}

// Expression returns the source text.
func (p *Program) Expression() string { return p.expression }

// CostLimit returns the maximum cost of one evaluation, in CEL cost units.
func (p *Program) CostLimit() uint64 { return p.environment.limits.Cost }

// Limits returns the limits of one evaluation.
func (p *Program) Limits() meter.Limits { return p.environment.limits }

// Evaluate returns the result for one input and charges the budget with the cost. Every error is an [*Error]. If ctx ends, the
// error wraps its cause and its error.
func (p *Program) Evaluate(ctx context.Context, input cel.Activation, budget *Budget) (bool, error) {
	verdict, err := evaluate[types.Bool](ctx, p, input, budget)
	return bool(verdict), err
}

// EvaluateInt is like Evaluate for a program compiled by [Environment.CompileInt].
func (p *Program) EvaluateInt(ctx context.Context, input cel.Activation, budget *Budget) (int64, error) {
	value, err := evaluate[types.Int](ctx, p, input, budget)
	return int64(value), err
}

// EvaluateAny is like Evaluate for a program compiled by [Environment.CompileAny].
func (p *Program) EvaluateAny(ctx context.Context, input cel.Activation, budget *Budget) (ref.Val, error) {
	return evaluate[ref.Val](ctx, p, input, budget)
}

// evaluate returns a result of type T. It measures the duration if there is a timer.
func evaluate[T ref.Val](ctx context.Context, p *Program, input cel.Activation, budget *Budget) (T, error) {
	timer := p.environment.timer
	var start time.Time
	if timer != nil {
		start = timer.Now()
	}
	value, expense, err := p.program.Eval(ctx, input, p.environment.limits)
	if timer != nil {
		timer.ObserveDuration(p.environment.name, timer.Now().Sub(start))
	}
	cost := expense.Units()
	var result, zero T
	failure := budget.charge(cost, p.environment.advice)
	switch {
	case err != nil:
		failure = p.evaluationError(ctx, value, err)
	case failure == nil:
		var ok bool
		if result, ok = value.(T); !ok {
			failure = p.typeError(value.Type().TypeName())
		}
	}
	p.environment.observer.ObserveEvaluation(p.environment.name, cost, failure)
	if failure != nil {
		return zero, failure
	}
	return result, nil
}

func (p *Program) typeError(got string) *Error {
	return positioned(ReasonType, p.expression, p.location(nil),
		fmt.Sprintf("the expression must return %s, but returned %s", p.result, got))
}

// limitError names the exceeded limit, and the call that would have exceeded it.
func (p *Program) limitError(limit *meter.LimitError) *Error {
	by := ""
	if limit.Function != "" {
		by = fmt.Sprintf(" with this call of %s", shownName(limit.Function))
	}
	at, advice := p.start(limit.ID), p.environment.advice.Evaluation
	if limit.Unit == meter.UnitBytes {
		return positioned(ReasonMemory, p.expression, at,
			fmt.Sprintf("one evaluation exceeds the memory limit of %d bytes%s: make shorter texts and lists", limit.Limit, by))
	}
	return positioned(ReasonCostLimit, p.expression, at,
		fmt.Sprintf("one evaluation exceeds the cost limit of %d%s: %s", limit.Limit, by, advice))
}

// shownName returns the name of a function as users write it.
func shownName(function string) string {
	if symbol, isOperator := operators.FindReverse(function); isOperator && symbol != "" {
		return symbol
	}
	return strings.TrimPrefix(function, "@")
}

// OutputType returns the static type of the result: the required type, or a type that may include it, such as dyn.
func (p *Program) OutputType() *cel.Type { return p.ast.OutputType() }
