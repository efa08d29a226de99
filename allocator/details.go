// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/setcount"
	"github.com/celset/celset/allocator/internal/shape"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// These types describe the outcome of an Allocate call in addition to the devices.
type (
	// Details holds the information that [Allocator.AllocateWithDetails] returns in addition to results.
	Details = answer.Details
	// Stats counts the work of one Allocate call, or of all calls of an [Allocator].
	Stats = answer.Stats
	// PreferenceOutcome is the quality of the chosen set: proven to be the best, or the best that was found.
	PreferenceOutcome = answer.Outcome
	// PreferenceValue is the value of a preference for the chosen devices.
	PreferenceValue = answer.Value
	// ShapeLoss counts the sets of a [Shape] that the chosen devices make unavailable, and the sets that remain.
	ShapeLoss = answer.Loss
	// EvaluationError is returned if the claims don't fit on a node because a CEL constraint failed on the node's devices. Only
	// constraints whose failure policy excludes just the node cause this error. It requires the option [WithReasons].
	EvaluationError = answer.Error
)

// These are the outcomes of preferences.
const (
	// PreferenceBest means that no better set exists.
	PreferenceBest = answer.Best
	// PreferenceBestFound means that the search ended early, so that better sets may exist.
	PreferenceBestFound = answer.BestFound
)

// DescribeValue returns the text that [PreferenceValue.String] returns for a PreferenceValue with this value and these losses.
func DescribeValue(value int64, losses []ShapeLoss) string {
	return answer.DescribeValue(value, losses)
}

// Shape describes sets of devices that claims may ask for: a number of devices of a class that satisfy a constraint of the class.
type Shape = shape.Shape

const (
	// MaxShapes is the maximum number of shapes that [WithShapes] uses.
	MaxShapes = shape.Max
	// MaxShapesOfClass is the maximum number of shapes of one class that [MostAsked] returns.
	MaxShapesOfClass = shape.MaxOfClass
)

// ShapesOf returns the shapes that a claim asks for: its sets that must satisfy constraints of its classes.
func ShapesOf(claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter) []Shape {
	return shape.Of(claim, classes)
}

// MostAsked returns the shapes that claims ask for most, the most frequent first. [WithShapes] takes the result.
func MostAsked(counts map[Shape]int) []Shape { return shape.MostAsked(counts) }

// AskedFrequency returns the order of magnitude of the number of claims for a shape. MostAsked compares only this order.
func AskedFrequency(count int) int { return shape.AskedFrequency(count) }

// UsualShapes returns default shapes for a constraint that no claim asks for yet, in descending order of devices.
func UsualShapes(class, constraint string) []Shape { return shape.Usual(class, constraint) }

// SetCount is the number of sets of a shape that can be allocated at the same time.
type SetCount = setcount.Count

// CountSets returns, for each node, the number of claims for exactly this shape that could be allocated there at the same time.
// If several nodes can use a device, it counts for the first of them. CountSets ignores tolerations, admin access and sharing.
//
// The work is limited for each node, for all nodes, and by the budget of [WithAttemptBudget] if that option is set. If the
// limit was reached and more sets may exist, IsMost is false. An error concerns the shape, slices or the context.
func (a *Allocator) CountSets(ctx context.Context, nodes []*v1.Node, of Shape) ([]SetCount, error) {
	return setcount.On(ctx, a.planner, nodes, of)
}
