// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"errors"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// Reason tells errors apart.
type Reason string

const (
	// ReasonTooLong means that the expression is longer than [MaxExpressionLength].
	ReasonTooLong Reason = "TooLong"
	// ReasonInvalid means that the expression does not compile.
	ReasonInvalid Reason = "Invalid"
	// ReasonType means that the expression does not return bool.
	ReasonType Reason = "Type"
	// ReasonEstimate means that the expression may cost more than the limit for
	// estimates.
	ReasonEstimate Reason = "Estimate"
	// ReasonRuntime means that the evaluation failed, for example on a missing attribute.
	ReasonRuntime Reason = "Runtime"
	// ReasonCostLimit means that one evaluation cost more than the limit for one.
	ReasonCostLimit Reason = "CostLimit"
	// ReasonBudget means that all evaluations together cost more than their [Budget].
	ReasonBudget Reason = "Budget"
	// ReasonInterrupted means that the context ended. The error wraps the context's cause.
	ReasonInterrupted Reason = "Interrupted"
)

// Error is what is wrong with an expression.
type Error struct {
	Reason Reason
	// Expression is the source text, empty where it plays no role.
	Expression string
	// Line and Column are where the mistake stands, both counted from 1; zero if
	// there is no such place.
	Line, Column int
	// Message is the explanation without position.
	Message string

	display string
	err     error
}

// Error returns the message, with position and caret as CEL prints them where
// there is a position. It may have several lines.
func (e *Error) Error() string {
	if e.display != "" {
		return e.display
	}
	return e.Message
}

// Unwrap returns the cause, nil if there is none.
func (e *Error) Unwrap() error { return e.err }

// compileError keeps the position of the first of CEL's issues and the text of
// all of them.
func compileError(expression string, issues *cel.Issues) *Error {
	result := &Error{
		Reason:     ReasonInvalid,
		Expression: expression,
		Message:    issues.Err().Error(),
		display:    issues.String(),
	}
	if all := issues.Errors(); len(all) > 0 {
		result.Message = all[0].Message
		result.Line, result.Column = place(all[0].Location)
	}
	return result
}

// positioned prints message with the line of the source and a caret below it.
func positioned(reason Reason, source common.Source, at common.Location, message string) *Error {
	issue := &common.Error{Location: at, Message: message}
	line, column := place(at)
	return &Error{
		Reason:     reason,
		Expression: source.Content(),
		Line:       line,
		Column:     column,
		Message:    message,
		display:    issue.ToDisplayString(source),
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
func (p *Program) evaluationError(value ref.Val, err error, cause error) *Error {
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return p.costLimitError()
	case cause != nil:
		return &Error{
			Reason:     ReasonInterrupted,
			Expression: p.expression,
			Message:    "evaluation interrupted: " + cause.Error(),
			err:        cause,
		}
	}
	message := dracel.EnhanceRuntimeError(err).Error()
	result := positioned(ReasonRuntime, p.ast.Source(), p.location(value), message)
	result.err = err
	return result
}

// location finds where a runtime error comes from, the start of the expression
// if CEL does not tell.
func (p *Program) location(value ref.Val) common.Location {
	if failure, ok := value.(*types.Err); ok && failure.NodeID() != 0 {
		if at := p.ast.NativeRep().SourceInfo().GetStartLocation(failure.NodeID()); at.Line() > 0 {
			return at
		}
	}
	return common.NewLocation(1, 0)
}
