// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape has the sets that claims ask for of a device class: how many devices, and which constraint of the class they
// satisfy. The policy KeepWhole keeps such sets whole for other claims, and reports count them.
package shape

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Shape is a set of devices that somebody may ask for: so many devices of a class that satisfy a
// constraint which the class defines. It is comparable.
type Shape struct {
	// Class is the name of a DeviceClass.
	Class string `json:"class"`
	// Constraint is the name of a CEL device constraint that the class defines.
	Constraint string `json:"constraint"`
	// Count is the number of devices, at least 1.
	Count int `json:"count"`
}

// NewClaim returns a claim for the shape.
func NewClaim(s Shape) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: s.Constraint},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "devices", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: s.Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(s.Count),
			}}},
			Constraints: []resourceapi.DeviceConstraint{{
				MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + s.Constraint)),
			}},
		}},
	}
}

// Max is how many shapes of those that are known are looked at.
const Max = 16

// UsualCounts are looked at as long as it is not known what is asked for.
var UsualCounts = []int{16, 8, 4, 2}

// MaxOfClaim is the number of shapes of one claim that count.
const MaxOfClaim = 4

// MaxOfClass is how many shapes of one class are worth knowing.
const MaxOfClass = 8

// AskedFrequency tells how often a shape was asked for, about: its order of magnitude. With each
// change of what is asked for most an allocator begins to find out anew what it knows, so that one
// claim more should not matter.
func AskedFrequency(count int) int { return bits.Len(uint(count)) }

// MostAsked are the shapes that were asked for most, of those that were asked for as often as is
// said: the most frequent first, and of those with the same [AskedFrequency] the largest. At most
// [MaxOfClass] are of one class.
func MostAsked(counts map[Shape]int) []Shape {
	order := func(s, o Shape) int {
		return cmp.Or(cmp.Compare(AskedFrequency(counts[o]), AskedFrequency(counts[s])), cmp.Compare(o.Count, s.Count),
			cmp.Compare(s.Class, o.Class), cmp.Compare(s.Constraint, o.Constraint))
	}
	ofClass := map[string]int{}
	most := slices.SortedFunc(maps.Keys(counts), order)
	return slices.DeleteFunc(most, func(s Shape) bool {
		ofClass[s.Class]++
		return ofClass[s.Class] > MaxOfClass
	})
}

// Of are the shapes that a claim asks for: the sets that it wants to satisfy constraints which
// its classes define, with a reference or by default. A claim that defines a constraint itself asks
// for what others won't, and so does one that wants devices of several classes together, or does not
// say how many.
func Of(claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter) []Shape {
	hasDefaults := func(name string) bool {
		class, err := classes.Get(name)
		return err == nil && v1alpha1.HasDefaults(class)
	}
	if !v1alpha1.HasConstraints(claim, hasDefaults) {
		return nil
	}
	constraints, err := v1alpha1.Resolve(claim, classes)
	if err != nil {
		// Whoever tries to allocate it says so.
		return nil
	}
	var shapes []Shape
	for i := range constraints {
		shape, ok := shapeOf(claim, &constraints[i])
		if ok && !slices.Contains(shapes, shape) && len(shapes) < MaxOfClaim {
			shapes = append(shapes, shape)
		}
	}
	return shapes
}

// shapeOf is the set that a constraint of a class is about, if it is of so many devices of one
// class.
func shapeOf(claim *resourceapi.ResourceClaim, constraint *v1alpha1.Constraint) (shape Shape, ok bool) {
	if constraint.Source.Object.Kind != "DeviceClass" {
		return shape, false
	}
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if len(constraint.Requests) > 0 && !slices.ContainsFunc(constraint.Requests, func(name string) bool { return resourceclaim.BaseRequestRef(name) == request.Name }) {
			continue
		}
		exactly := request.Exactly
		switch {
		case exactly == nil, exactly.AllocationMode != resourceapi.DeviceAllocationModeExactCount, exactly.Count > resourceapi.AllocationResultsMaxSize:
			// It is not known how many it will be of what.
			return shape, false
		case ptr.Deref(exactly.AdminAccess, false):
			// Takes nothing from anybody.
			return shape, false
		case shape.Class != "" && shape.Class != exactly.DeviceClassName:
			return shape, false
		}
		shape.Class = exactly.DeviceClassName
		shape.Count += int(exactly.Count)
	}
	shape.Constraint = constraint.Name
	// A single device is whole as long as it is free.
	return shape, 1 < shape.Count && shape.Count <= resourceapi.AllocationResultsMaxSize
}

// Usual returns the shapes of a constraint that nobody has asked for yet, most devices first.
func Usual(class, constraint string) []Shape {
	shapes := make([]Shape, len(UsualCounts))
	for i, count := range UsualCounts {
		shapes[i] = Shape{class, constraint, count}
	}
	return shapes
}
