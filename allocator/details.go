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

// Details of one Allocate call: statistics, and the values of preferences.
type (
	// Details has what [Allocator.AllocateWithDetails] returns besides results.
	Details = answer.Details
	// Stats counts the work that an [Allocator] did, over all its Allocate calls.
	Stats = answer.Stats
	// PreferenceOutcome tells how good a set is that was chosen by preferences.
	PreferenceOutcome = answer.Outcome
	// PreferenceValue is the value of a preference for the devices that were chosen.
	PreferenceValue = answer.Value
	// ShapeLoss has the sets of a shape that the chosen devices break.
	ShapeLoss = answer.Loss
	// EvaluationError says that claims do not fit a node because a CEL constraint failed on devices of the node, and says that
	// its failures are about the node. It is returned with [WithReasons].
	EvaluationError = answer.Error
)

// These are the outcomes of preferences.
const (
	// PreferenceBest means that no set is better.
	PreferenceBest = answer.Best
	// PreferenceBestFound means that the search ended before, so that sets which were not looked at may be better.
	PreferenceBestFound = answer.BestFound
)

// DescribeValue is [PreferenceValue.String] for the fields of a copy.
func DescribeValue(value int64, losses []ShapeLoss) string {
	return answer.DescribeValue(value, losses)
}

// Shape is a set of devices that somebody may ask for: a number of devices of a class that satisfy a constraint which the
// class defines.
type Shape = shape.Shape

const (
	// MaxShapes is the number of shapes that are looked at.
	MaxShapes = shape.Max
	// MaxShapesOfClass is the number of shapes of one class that are worth knowing.
	MaxShapesOfClass = shape.MaxOfClass
)

// ShapesOf returns the shapes that a claim asks for: the sets that it wants to satisfy constraints which its classes define.
func ShapesOf(claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter) []Shape {
	return shape.Of(claim, classes)
}

// MostAsked returns the shapes that were asked for most, the most frequent first. It is what [WithShapes] takes.
func MostAsked(counts map[Shape]int) []Shape { return shape.MostAsked(counts) }

// AskedFrequency returns the order of magnitude of a number of claims for a shape. MostAsked sees no more of the number.
func AskedFrequency(count int) int { return shape.AskedFrequency(count) }

// UsualShapes returns the shapes of a constraint that nobody has asked for yet, most devices first.
func UsualShapes(class, constraint string) []Shape { return shape.Usual(class, constraint) }

// SetCount is the number of sets of a shape that can be had at the same time.
type SetCount = setcount.Count

// CountSets tells for each node how many claims for the shape, and for nothing else, would get
// devices there now at the same time. A device that several nodes can use counts for the first of
// them. What a tainted device is tolerated for, who has administrative access, and who would share
// a device plays no role.
//
// The work for a node and for all of them is limited, and so is that of a [WithAttemptBudget]:
// SetCount tells where there may be more. The error is one of the shape or of a node's slices, or the
// context has ended.
func (a *Allocator) CountSets(ctx context.Context, nodes []*v1.Node, of Shape) ([]SetCount, error) {
	return setcount.On(ctx, a.planner, nodes, of)
}
