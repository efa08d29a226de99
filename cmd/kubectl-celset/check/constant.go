// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/google/cel-go/common/ast"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
)

// A condition that holds for every set of the existing devices excludes none. The checker finds such conditions by searching for
// a set that violates the condition:
//
//  1. Skip conditions that only count devices or test for attributes, because they guard other conditions.
//  2. Search with the negated condition as the claim's only constraint. If no node has a set and no evaluation fails, the
//     condition always holds.
//  3. If a search exceeds its budget or time, report nothing. Both limits are small, because the result is only a warning.

// Each search gets 1/partOfBudget of the default budget. All searches together get constantTime.
const (
	partOfBudget = 20
	constantTime = 10 * time.Second
)

// newContrary returns an allocator for the searches of step 2. It has a small budget and treats all devices as free.
func (c *checker) newContrary(ctx context.Context) (*allocator.Allocator, error) {
	budget := allocator.DefaultBudget()
	budget.Cost, budget.Steps = budget.Cost/partOfBudget, budget.Steps/partOfBudget
	problem := c.state.Problem(nil, c.Features, allocator.WithCache(allocator.NewCache()), allocator.WithEnvironment(c.environment),
		allocator.WithReasons(), allocator.WithoutPreferences(), allocator.WithoutDefaultConstraints(),
		allocator.WithBudget(budget))
	problem.Allocated = nil
	return problem.NewAllocator(ctx)
}

// constant warns of conditions of a constraint that hold for every set of devices that the claim could get.
func (c *checker) constant(object *Object, result *Constraint, where string, alone *resourceapi.ResourceClaim, constraint v1alpha1.Constraint) {
	haveChoice := slices.ContainsFunc(result.Nodes, func(on NodeSets) bool { return on.Sets.Cmp(big.NewInt(1)) > 0 })
	if !haveChoice {
		return
	}
	for i, conjunct := range result.Conjuncts {
		if i == maxPlaces {
			return
		}
		if conjunct.Text == "" || !c.compares(conjunct.Text, constraint.Variables) {
			continue
		}
		negated := constraint
		negated.Expression = "!(" + conjunct.Text + ")"
		if c.hasNone(constrained(alone.DeepCopy(), negated)) {
			object.Warnings = append(object.Warnings, Finding{Line: conjunct.Line, Column: conjunct.Column, Message: fmt.Sprintf(
				"%s: %s, line %d, column %d: the condition is true for every set of matching devices, so it excludes no set: %s",
				where, result.Name, conjunct.Line, conjunct.Column, shortened(conjunct.Text))})
		}
	}
}

// hasNone reports whether the search proved that no node has a set for the claim. If an evaluation fails or there are too many
// nodes, nothing is proved.
func (c *checker) hasNone(claim *resourceapi.ResourceClaim) bool {
	if c.contrary == nil {
		return false
	}
	ctx, cancel := context.WithDeadline(c.searching, c.constantUntil)
	defer cancel()
	for i, node := range c.nodes.all {
		if c.passed.Has(node.Name) {
			continue
		}
		if i == maxSearched {
			return false
		}
		found, err := c.contrary.Allocate(ctx, node, []*resourceapi.ResourceClaim{claim})
		_, failed := errors.AsType[*allocator.EvaluationError](err)
		if len(found) > 0 || failed || err != nil && !isOfNode(err) {
			return false
		}
	}
	return true
}

// compares is false for the conditions of step 1. It reports whether a condition reads attributes or capacities and does more
// than test for attributes.
func (c *checker) compares(text string, variables []v1alpha1.Variable) bool {
	expression, err := c.environment.Compile(c.searching, text, variables...)
	if err != nil {
		return false
	}
	reads, isGuard := false, false
	tree.Visit(expression.AST().Expr(), func(part ast.Expr, _ tree.Names) {
		reads = reads || part.Kind() == ast.SelectKind && !part.AsSelect().IsTestOnly()
		if _, isRead, ok := device.NameOf(part); ok {
			isGuard = isGuard || !isRead
		}
	})
	readsValue := false
	tree.Visit(expression.AST().Expr(), func(part ast.Expr, _ tree.Names) {
		readsValue = readsValue || device.IsAttribute(expression.AST(), part)
	})
	return reads && (readsValue || !isGuard)
}
