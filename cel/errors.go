// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"errors"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celset/celset/cel/compat"
	"github.com/celset/celset/cel/meter"
)

// Reason tells errors apart.
type Reason string

const (
	// ReasonTooLong means that the expression is longer than it may be, or larger once it is
	// parsed: [MaxTokens], [MaxNodes], [MaxDepth], [MaxTypeSize], or a regular expression in it.
	ReasonTooLong Reason = "TooLong"
	// ReasonInvalid means that the expression does not compile.
	ReasonInvalid Reason = "Invalid"
	// ReasonType means that the expression does not return what it has to: bool, or int.
	ReasonType Reason = "Type"
	// ReasonRuntime means that the evaluation failed, for example on a missing attribute.
	ReasonRuntime Reason = "Runtime"
	// ReasonCostLimit means that one evaluation cost more than the limit for one.
	ReasonCostLimit Reason = "CostLimit"
	// ReasonMemory means that one evaluation would have made more than it may.
	ReasonMemory Reason = "Memory"
	// ReasonBudget means that all evaluations together cost more than their [Budget].
	ReasonBudget Reason = "Budget"
	// ReasonInterrupted means that the context ended. The error wraps the context's cause.
	ReasonInterrupted Reason = "Interrupted"
)

// Error is what is wrong with an expression.
type Error struct {
	Reason Reason
	// Variable is the variable in which the mistake is, empty if it is in the expression
	// itself. When a variable fails in an evaluation, the place is where it is read.
	Variable string
	// Expression is the source text, of the variable if there is one. It is empty where it
	// plays no role.
	Expression string
	// Line and Column are where the mistake stands, both counted from 1; zero if
	// there is no such place.
	Line, Column int
	// Message is the explanation without position.
	Message string

	// display has position and caret. It is drawn when it is asked for: most errors of a
	// search are not shown to anybody, and a line may be long.
	display func() string
	err     error
}

// Error returns the message, with position and caret as CEL prints them where
// there is a position. It may have several lines.
func (e *Error) Error() string {
	text := e.Message
	if e.display != nil {
		text = e.display()
	}
	if e.Variable != "" {
		return "variable " + e.Variable + ": " + text
	}
	return text
}

// in says in which variable the mistake is.
func (e *Error) in(variable string) *Error {
	e.Variable = variable
	return e
}

// Unwrap returns the cause, nil if there is none.
func (e *Error) Unwrap() error { return e.err }

// bareSource shows no lines: CEL draws the line of each of up to a hundred mistakes, twice, and
// takes the square of its length for the caret below it. We draw those that are shown.
type bareSource struct {
	common.Source
}

// Snippet has nothing.
func (bareSource) Snippet(int) (string, bool) { return "", false }

// compileError keeps the position of the first of CEL's issues and the text of
// some of them.
func (e *Environment) compileError(expression string, issues *cel.Issues) *Error {
	all := issues.Errors()
	e.addNearest(expression, all)
	text := displayAll(expression, all)
	result := &Error{
		Reason:     ReasonInvalid,
		Expression: expression,
		Message:    shortened(all[0].Message),
		display:    func() string { return text },
	}
	result.Line, result.Column = place(all[0].Location)
	return result
}

// An UntypedValidator is a validator of CEL that reads expressions without types, too. CEL asks validators only about
// expressions whose types are right.
type UntypedValidator interface {
	cel.ASTValidator
	// Untyped does nothing.
	Untyped()
}

// mistyped returns what an [UntypedValidator] finds, because that may be the reason why types are wrong, and otherwise the
// issues of the type checker.
func (e *Environment) mistyped(expression string, parsed *cel.Ast, issues *cel.Issues) *Error {
	syntax := parsed.NativeRep()
	found := cel.NewIssuesWithSourceInfo(common.NewErrors(parsed.Source()), syntax.SourceInfo())
	for _, validator := range e.env.Validators() {
		if untyped, ok := validator.(UntypedValidator); ok {
			untyped.Validate(e.env, nil, syntax, found)
		}
	}
	if found.Err() != nil {
		issues = found
	}
	return e.compileError(expression, issues)
}

// positioned prints message with the line of the expression and a caret below it.
func positioned(reason Reason, expression string, at common.Location, message string) *Error {
	line, column := place(at)
	return &Error{
		Reason:     reason,
		Expression: expression,
		Line:       line,
		Column:     column,
		Message:    message,
		display:    sync.OnceValue(func() string { return display(expression, at, message) }),
	}
}

// place counts from 1. CEL counts columns from 0, has a column before the first
// for an empty expression and a negative line for a mistake without place.
func place(at common.Location) (line, column int) {
	if at.Line() <= 0 {
		return 0, 0
	}
	return at.Line(), max(1, at.Column()+1)
}

// evaluationError says what stopped an evaluation. value is what the program
// returned beside err: CEL keeps the position of a runtime error in it.
func (p *Program) evaluationError(ctx context.Context, value ref.Val, err error) *Error {
	if limit, ok := errors.AsType[*meter.LimitError](err); ok {
		return p.limitError(limit)
	}
	if _, ended := errors.AsType[*meter.InterruptedError](err); ended {
		cause := ContextError(ctx)
		return &Error{
			Reason:     ReasonInterrupted,
			Expression: p.expression,
			Message:    "evaluation interrupted: " + cause.Error(),
			err:        cause,
		}
	}
	result := positioned(ReasonRuntime, p.expression, p.location(value), shortened(compat.EnhanceRuntimeError(err).Error()))
	result.err = err
	return result
}

// location finds where a runtime error comes from, the start of the expression
// if CEL does not tell.
func (p *Program) location(value ref.Val) common.Location {
	if failure, ok := value.(*types.Err); ok {
		return p.start(failure.NodeID())
	}
	return p.start(0)
}

// start is where a part of the expression starts, the start of the expression if it is not
// known.
func (p *Program) start(id int64) common.Location {
	if id != 0 {
		if at := p.ast.NativeRep().SourceInfo().GetStartLocation(id); at.Line() > 0 {
			return at
		}
	}
	return common.NewLocation(1, 0)
}
