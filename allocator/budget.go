// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"fmt"
	"math/big"

	"k8s.io/apimachinery/pkg/types"

	"github.com/celset/celset/cel"
)

// A search may have more sets to look at than anybody can wait for, and reading the
// expression does not always help. Two budgets end it, so that the same input has
// the same outcome on a slow machine and on a fast one: the cost of all evaluations,
// which cel.Budget counts, and the steps, for a search that evaluates little. An
// [AttemptBudget] bounds both for all nodes together. The time limit of the context is
// the last resort.
//
// Searches without CEL constraints have no budget: they are to behave as upstream's,
// which knows the context only.

// BudgetUnit is what a budget of an [Allocator] is counted in.
type BudgetUnit string

const (
	// BudgetCost is the cost of evaluations, in CEL cost units ([WithCostBudget]).
	BudgetCost BudgetUnit = "CEL cost units"
	// BudgetSteps is the number of steps of the search, as in [Stats]
	// ([WithStepBudget]).
	BudgetSteps BudgetUnit = "steps"
)

// BudgetError says that an Allocate call used up a budget before it had an answer.
// It is about the claim, not about the node: on other nodes the search would be as
// long, or was. Nothing was allocated.
type BudgetError struct {
	// Claim is the claim with the constraint.
	Claim types.NamespacedName
	// Constraint is the name of the CEL constraint that the search was busy with.
	Constraint string
	// Node is the name of the node.
	Node string
	// Unit and Limit are the budget.
	Unit  BudgetUnit
	Limit uint64
	// Attempt tells that it is the budget of all nodes together ([WithAttemptBudget]).
	Attempt bool
	// SetsLeft is how many of the Sets that the constraint could get on the node were
	// not decided, with the prioritized lists and everything that the constraint does
	// not cover as the search last tried them. Requests count as if each were alone: if
	// two want the same devices, sets that have a device twice are counted as well.
	SetsLeft, Sets *big.Int

	err error
}

// Error says what to do, too.
func (e *BudgetError) Error() string {
	what, raise, cheaper := "the evaluations together exceed the cost budget", "cost", " write a cheaper expression,"
	switch {
	case e.Attempt && e.Unit == BudgetSteps:
		what, raise = "the searches on all nodes together exceed the step budget", "attemptSteps"
	case e.Attempt:
		what, raise = "the evaluations on all nodes together exceed the cost budget", "attemptCost"
	case e.Unit == BudgetSteps:
		what, raise = "the search exceeds the step budget", "steps"
	}
	if e.Unit == BudgetSteps {
		cheaper = " split the expression into simple conditions joined by &&,"
	}
	return fmt.Sprintf("claim %s, constraint %s, node %s: %s of %d %s, with %d of %d sets of devices left undecided: "+
		"narrow the candidates with selectors or matchAttribute,%s or raise budget.%s in the scheduler plugin's DynamicResourcesCELArgs",
		e.Claim, e.Constraint, e.Node, what, e.Limit, e.Unit, e.SetsLeft, e.Sets, cheaper, raise)
}

// Unwrap returns the [*cel.Error] of the evaluation that exceeded the budget, nil if
// the steps did.
func (e *BudgetError) Unwrap() error { return e.err }

// isOverBudget tells whether an evaluation used up what all of them may cost.
func isOverBudget(err error) bool {
	failure, ok := errors.AsType[*cel.Error](err)
	return ok && failure.Reason == cel.ReasonBudget
}

func (c *celConstraint) costError(err error) error {
	return c.budgetError(limit{unit: BudgetCost, value: c.search.allocator.costBudget}, err)
}

func (c *celConstraint) budgetError(of limit, err error) *BudgetError {
	left, sets := undecided(c.combinations())
	return &BudgetError{
		Claim:      types.NamespacedName{Namespace: c.claim.Namespace, Name: c.claim.Name},
		Constraint: c.name,
		Node:       c.search.node.Name,
		Unit:       of.unit,
		Limit:      of.value,
		Attempt:    of.attempt,
		SetsLeft:   left,
		Sets:       sets,
		err:        err,
	}
}

// busyWith is the CEL constraint that the search is about to find devices for: the
// last of those that have some and lack some, else the first of those that lack
// some. If all sets are complete it is the last, for another set of it is what would
// be tried next.
func (s *search) busyWith() *celConstraint {
	var begun, open *celConstraint
	for _, c := range s.celConstraints {
		switch {
		case c.undecided == 0 && len(c.members) == c.wanted:
		case len(c.members) > 0:
			begun = c
		case open == nil:
			open = c
		}
	}
	switch {
	case begun != nil:
		return begun
	case open != nil:
		return open
	default:
		return s.celConstraints[len(s.celConstraints)-1]
	}
}
