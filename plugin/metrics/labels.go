// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
)

// Constraint is a value of the label "constraint". It is the most expensive kind of constraint in a claim, or in all claims of
// a search.
type Constraint string

const (
	// ConstraintNone means that no claim has a constraint.
	ConstraintNone Constraint = "none"
	// ConstraintAttribute means matchAttribute or distinctAttribute.
	ConstraintAttribute Constraint = "attribute"
	// ConstraintCEL means a CEL device constraint.
	ConstraintCEL Constraint = "cel"
)

// constraintOf returns the most expensive kind of constraint in the claims. A malformed reference counts as ConstraintCEL,
// because only this plugin reads references.
func constraintOf(claims ...*resourceapi.ResourceClaim) Constraint {
	result := ConstraintNone
	for _, claim := range claims {
		switch {
		case v1alpha1.HasReference(claim):
			return ConstraintCEL
		case len(claim.Spec.Devices.Constraints) > 0:
			result = ConstraintAttribute
		}
	}
	return result
}

// Outcome is a value of the label "result". It is the result of a search for devices on one node.
type Outcome string

const (
	// OutcomeAllocated means that all claims can get devices.
	OutcomeAllocated Outcome = "allocated"
	// OutcomeNoFit means that the claims don't fit on this node.
	OutcomeNoFit Outcome = "no_fit"
	// OutcomeError means that claims, classes or devices are invalid.
	OutcomeError Outcome = "error"
	// OutcomeBudget means that the search exceeded a budget.
	OutcomeBudget Outcome = "budget"
	// OutcomeTimeout means that the search exceeded the time for one node.
	OutcomeTimeout Outcome = "timeout"
	// OutcomeCancelled means that the scheduler ended the search: it had found enough other nodes, or it was stopping.
	OutcomeCancelled Outcome = "cancelled"
)

func outcomeOf(found bool, err error) Outcome {
	switch {
	case err == nil && found:
		return OutcomeAllocated
	case err == nil, errors.Is(err, structured.ErrFailedAllocationOnNode):
		return OutcomeNoFit
	case errors.Is(err, context.DeadlineExceeded):
		return OutcomeTimeout
	case errors.Is(err, context.Canceled):
		return OutcomeCancelled
	}
	if _, ok := errors.AsType[*allocator.BudgetError](err); ok {
		return OutcomeBudget
	}
	return OutcomeError
}

// budgetOf returns the value of the label "budget" for an exceeded budget. It is the name of the budget's field in the plugin's
// arguments.
func budgetOf(err *allocator.BudgetError) string {
	if err.Unit == allocator.BudgetSteps {
		return budgetSteps
	}
	return budgetCost
}

// Refusal is a value of the label "reason". It is the reason why a pod was refused before any node was examined.
type Refusal string

const (
	// RefusalGate means that the feature gate is off.
	RefusalGate Refusal = "gate_disabled"
	// RefusalConstraint means that a CEL device constraint is not defined, or that a constraint or preference is invalid.
	RefusalConstraint Refusal = "invalid_constraint"
	// RefusalSelector means that a device selector of a claim is invalid.
	RefusalSelector Refusal = "invalid_selector"
	// RefusalPreparing means that expressions of a claim are still being compiled.
	RefusalPreparing Refusal = "preparing"
	// RefusalBackOff means that a claim is in back-off, because its last attempts took too long.
	RefusalBackOff Refusal = "back_off"
	// RefusalShare means that the namespace has used up its share of the scheduler's time while pods of other namespaces wait.
	RefusalShare Refusal = "share"
)

// Values of labels.
const (
	scopeSet  = "set"
	scopePart = "part"

	cacheAnswers     = "answers"
	cacheVerdicts    = "verdicts"
	cacheExpressions = "expressions"

	hit  = "hit"
	miss = "miss"

	preferenceBest      = "best"
	preferenceBestFound = "best_found"

	budgetCost  = "cost"
	budgetSteps = "steps"

	compiled = "compiled"
	refused  = "refused"

	statePending   = "pending"
	stateAllocated = "allocated"

	stateNow    = "now"
	statePacked = "packed"
	stateIdle   = "idle"

	// unknown is the value of the label "reason" for an error of an evaluation that has no reason.
	unknown = "Unknown"
)

// failures lists the reasons why the evaluation of a complete expression fails.
var failures = []string{
	string(cel.ReasonRuntime), string(cel.ReasonType), string(cel.ReasonCostLimit), string(cel.ReasonBudget),
	string(cel.ReasonInterrupted), unknown,
}

// failuresOnDevices lists the reasons why a constraint fails on the devices of one node, so that only this node does not fit.
var failuresOnDevices = []string{string(cel.ReasonRuntime), string(cel.ReasonType), string(cel.ReasonCostLimit), string(cel.ReasonMemory)}

func failureOf(err error) string {
	if failure, ok := errors.AsType[*cel.Error](err); ok {
		return string(failure.Reason)
	}
	return unknown
}
