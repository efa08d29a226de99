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

// Reason classifies an [Error].
type Reason string

const (
	// ReasonTooLong means that the expression exceeds the maximum length in bytes, or a limit that is checked during
	// compilation: [MaxTokens], [MaxNodes], [MaxDepth], [MaxTypeSize], or the limit of a regular expression.
	ReasonTooLong Reason = "TooLong"
	// ReasonInvalid means that the expression does not compile.
	ReasonInvalid Reason = "Invalid"
	// ReasonType means that the expression does not return the required type: bool or int.
	ReasonType Reason = "Type"
	// ReasonRuntime means that the evaluation failed, for example on a missing attribute.
	ReasonRuntime Reason = "Runtime"
	// ReasonCostLimit means that one evaluation exceeded its cost limit.
	ReasonCostLimit Reason = "CostLimit"
	// ReasonMemory means that one evaluation would have exceeded its memory limit.
	ReasonMemory Reason = "Memory"
	// ReasonBudget means that all evaluations together exceeded their [Budget].
	ReasonBudget Reason = "Budget"
	// ReasonInterrupted means that the context ended. The error wraps the context's cause.
	ReasonInterrupted Reason = "Interrupted"
)

// Error describes a mistake in an expression or a failed evaluation.
type Error struct {
	Reason Reason
	// Variable is the name of the variable with the mistake. It is empty if the mistake is in the expression itself. It is also
	// empty if a variable fails during an evaluation. Then the position is where the expression reads the variable.
	Variable string
	// Expression is the source text of the variable or of the expression. It is empty if the error does not depend on the text.
	Expression string
	// Line and Column are the position of the mistake, counted from 1. They are zero without a position.
	Line, Column int
	// Message is the explanation without position.
	Message string

	// display prints the position and the caret. It is called only if the error is shown, because most errors of a search are
	// never shown, and a line may be long.
	display func() string
	err     error
}

// Error returns the message, with position and caret as CEL prints them if there is a position. It may have several lines.
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

// in sets the variable with the mistake.
func (e *Error) in(variable string) *Error {
	e.Variable = variable
	return e
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.err }

// bareSource hides the lines of the source from CEL. Otherwise CEL would print the line of each of up to a hundred mistakes,
// twice, and take quadratic time for the carets. Package cel prints only the mistakes that are shown.
type bareSource struct {
	common.Source
}

// Snippet returns no line.
func (bareSource) Snippet(int) (string, bool) { return "", false }

// compileError converts CEL's issues to an error. It has the position of the first issue, and the text of the first few issues.
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
	result.Line, result.Column = lineAndColumn(all[0].Location)
	return result
}

// An UntypedValidator is a CEL validator that also works on expressions whose type check failed. CEL itself calls validators
// only if the type check succeeds.
type UntypedValidator interface {
	cel.ASTValidator
	// Untyped marks the validator. The method does nothing.
	Untyped()
}

// mistyped returns the mistakes that an [UntypedValidator] finds in an expression with type errors, because these mistakes may
// be the cause. Without such mistakes it returns the issues of the type checker.
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

// positioned returns an error that prints message with the line of the expression and a caret below it.
func positioned(reason Reason, expression string, at common.Location, message string) *Error {
	line, column := lineAndColumn(at)
	return &Error{
		Reason:     reason,
		Expression: expression,
		Line:       line,
		Column:     column,
		Message:    message,
		display:    sync.OnceValue(func() string { return display(expression, at, message) }),
	}
}

// lineAndColumn returns the position counted from 1. CEL counts columns from 0. It uses column -1 for an empty expression, and a negative
// line for a mistake without a position.
func lineAndColumn(at common.Location) (line, column int) {
	if at.Line() <= 0 {
		return 0, 0
	}
	return at.Line(), max(1, at.Column()+1)
}

// evaluationError converts an error that stopped an evaluation. value is the value that the program returned together with err.
// For a runtime error, value has the position.
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

// location returns the position of a runtime error, or the start of the expression if CEL does not report a position.
func (p *Program) location(value ref.Val) common.Location {
	if failure, ok := value.(*types.Err); ok {
		return p.start(failure.NodeID())
	}
	return p.start(0)
}

// start returns the start of a part of the expression, or the start of the expression if the part has no position.
func (p *Program) start(id int64) common.Location {
	if id != 0 {
		if at := p.ast.NativeRep().SourceInfo().GetStartLocation(id); at.Line() > 0 {
			return at
		}
	}
	return common.NewLocation(1, 0)
}
