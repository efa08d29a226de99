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

// What is found out about a shape takes at most so many steps and so much cost, once for each kind
// of hardware. Sets that are not found by then are not counted. It is a part of what an attempt may
// spend on preferences by default, so that each attempt finds out something that is kept.
const (
	shapeSteps = 10_000
	shapeCost  = 500_000
)

// shapes has the sets of shapes on nodes of which nothing is in use.
type shapes struct {
	planner *Planner
	// idle is the planner for them, made when it is needed.
	idle func() *Planner
	// claims has a claim for each shape, so that it is the same object each time.
	claims sync.Map // Shape -> *resourceapi.ResourceClaim
}

func newShapes(a *Planner) *shapes {
	return &shapes{planner: a, idle: sync.OnceValue(func() *Planner { return newIdle(a) })}
}

// newIdle returns the planner for a cluster in which nothing is in use and nobody prefers anything.
func newIdle(a *Planner) *Planner {
	idle := a.In(availability.NewState(availability.Nothing()))
	// A plan of the idle planner asks for the sets of shapes, too.
	idle.shapes = a.shapes
	idle.ResolvedClaims = &resolvedClaims{}
	idle.Preferences, idle.Reasons, idle.Unbounded = false, false, false
	idle.CostBudget, idle.StepBudget, idle.Attempt = shapeCost, shapeSteps, budget.PreferencesOf(a.Attempt)
	return idle
}

// claimFor is a claim for the shape.
func (h *shapes) claimFor(of shape.Shape) *resourceapi.ResourceClaim {
	if known, ok := h.claims.Load(of); ok {
		return known.(*resourceapi.ResourceClaim)
	}
	made, _ := h.claims.LoadOrStore(of, shape.NewClaim(of))
	return made.(*resourceapi.ResourceClaim)
}

// of are the shapes that matter to a claim for devices of the classes, most important first: those
// that were asked for, whatever their classes are, since other classes may have the same devices;
// and for constraints of its own classes for which nobody has asked yet the usual counts.
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

// definedBy are the names of the constraints that a class defines.
func (h *shapes) definedBy(className string) []string {
	class, err := h.planner.Classes.Get(className)
	if err != nil {
		return nil
	}
	// Of a class with mistakes in it, those that have none.
	definitions, _ := v1alpha1.ClassDefinitions(class)
	names := make([]string, len(definitions))
	for i := range definitions {
		names[i] = definitions[i].Name
	}
	return names
}

// IdlePlan returns the plan for a claim for the shape, in a cluster in which nothing is in use.
func (a *Planner) IdlePlan(of shape.Shape) *Plan {
	return a.shapes.idle().PlanFor([]*resourceapi.ResourceClaim{a.shapes.claimFor(of)})
}

// IdlePlanIn returns the plan for a claim for the shape beside what is in use in the state.
func (a *Planner) IdlePlanIn(state *availability.State, of shape.Shape) *Plan {
	idle := newIdle(a)
	idle.State = state
	return idle.PlanFor([]*resourceapi.ResourceClaim{a.shapes.claimFor(of)})
}
