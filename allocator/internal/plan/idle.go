// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/shape"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// These are the limits for listing the sets of a shape, which is done once for each kind of hardware. Sets beyond the limits
// are not counted. The limits are a part of the default budget for preferences, so that each attempt can cache some sets.
const (
	shapeSteps = 10_000
	shapeCost  = 500_000
)

// shapes provides the claim of each shape, and the planner that lists the sets of shapes on idle nodes.
type shapes struct {
	planner *Planner
	// idle returns the planner for idle nodes. It creates the planner at the first call.
	idle func() *Planner
	// claims maps each shape to a claim. The claim of a shape is always the same object, because planners cache claims by pointer.
	claims sync.Map // Shape -> *resourceapi.ResourceClaim
}

func newShapes(a *Planner) *shapes {
	return &shapes{planner: a, idle: sync.OnceValue(func() *Planner { return newIdle(a) })}
}

// newIdle returns a copy of the planner for a cluster without devices in use and without preferences.
func newIdle(a *Planner) *Planner {
	idle := a.In(availability.NewState(availability.Nothing()))
	// The idle planner uses the same claims for shapes.
	idle.shapes = a.shapes
	idle.ResolvedClaims = &resolvedClaims{}
	idle.Preferences, idle.Reasons, idle.Unbounded = false, false, false
	idle.CostBudget, idle.StepBudget, idle.Attempt = shapeCost, shapeSteps, budget.PreferencesOf(a.Attempt)
	return idle
}

// claimFor returns the claim that asks for one set of the shape.
func (h *shapes) claimFor(of shape.Shape) *resourceapi.ResourceClaim {
	if known, ok := h.claims.Load(of); ok {
		return known.(*resourceapi.ResourceClaim)
	}
	made, _ := h.claims.LoadOrStore(of, shape.NewClaim(of))
	return made.(*resourceapi.ResourceClaim)
}

// of returns the shapes that KeepWhole should keep available when devices of the given classes are allocated, most important
// first. First come the shapes that other claims asked for, with any class, because different classes may have the same
// devices. Then come the constraints of the given classes that no claim asked for, with the usual counts.
func (h *shapes) of(classes sets.Set[string]) []shape.Shape {
	all := slices.Clone(h.planner.Asked[:min(len(h.planner.Asked), shape.Max)])
	for _, count := range shape.UsualCounts {
		for _, class := range sets.List(classes) {
			for _, constraint := range h.definedBy(class) {
				isOf := func(s shape.Shape) bool { return s.Class == class && s.Constraint == constraint }
				if len(all) < shape.Max && !slices.ContainsFunc(h.planner.Asked, isOf) {
					all = append(all, shape.Shape{Class: class, Constraint: constraint, Count: count})
				}
			}
		}
	}
	return all
}

// definedBy returns the names of the constraints that a class defines.
func (h *shapes) definedBy(className string) []string {
	class, err := h.planner.Classes.Get(className)
	if err != nil {
		return nil
	}
	// If the class contains invalid definitions, use the valid definitions only.
	definitions, _ := v1alpha1.ClassDefinitions(class)
	names := make([]string, len(definitions))
	for i := range definitions {
		names[i] = definitions[i].Name
	}
	return names
}

// IdlePlan returns the plan for a claim that asks for the shape, in a cluster without devices in use.
func (a *Planner) IdlePlan(of shape.Shape) *Plan {
	return a.shapes.idle().PlanFor([]*resourceapi.ResourceClaim{a.shapes.claimFor(of)})
}

// IdlePlanIn returns the plan for a claim that asks for the shape, in a cluster with the devices in use given by state.
func (a *Planner) IdlePlanIn(state *availability.State, of shape.Shape) *Plan {
	idle := newIdle(a)
	idle.State = state
	return idle.PlanFor([]*resourceapi.ResourceClaim{a.shapes.claimFor(of)})
}
