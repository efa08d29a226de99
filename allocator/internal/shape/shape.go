// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape describes the sets of devices that claims ask for: a number of devices of a class that satisfy a constraint of
// the class. The policy KeepWhole keeps such sets whole for other claims, and reports count them.
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

// Shape describes sets of devices that claims may ask for: a number of devices of a class that satisfy a constraint of the class.
// It is comparable.
type Shape struct {
	// Class is the name of a DeviceClass.
	Class string `json:"class"`
	// Constraint is the name of a CEL device constraint of the class.
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

// Max is the maximum number of shapes that the policy KeepWhole uses.
const Max = 16

// UsualCounts holds the counts to use until claims ask for others.
var UsualCounts = []int{16, 8, 4, 2}

// MaxOfClaim is the maximum number of shapes of one claim.
const MaxOfClaim = 4

// MaxOfClass is the maximum number of shapes of one class that [MostAsked] returns.
const MaxOfClass = 8

// AskedFrequency returns the order of magnitude of a number of claims for a shape. When the most frequent shapes change, cached
// results become useless, so a single additional claim should not matter.
func AskedFrequency(count int) int { return bits.Len(uint(count)) }

// MostAsked returns the shapes that claims ask for most, by [AskedFrequency] and then by size. At most [MaxOfClass] are of one
// class.
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

// Of returns the shapes of a claim: the sets that must satisfy constraints of its classes, by reference or by default.
// Constraints that the claim defines itself don't count, because no other claim uses them. Sets of several classes or without a
// fixed number of devices have no shape.
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
		// Allocating the claim reports the error.
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

// shapeOf returns the shape of the sets of a constraint. ok is false unless a class defines it and the set has a fixed number of
// devices of one class.
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
			// The number of devices or their class is not fixed.
			return shape, false
		case ptr.Deref(exactly.AdminAccess, false):
			// Admin access takes no devices from others.
			return shape, false
		case shape.Class != "" && shape.Class != exactly.DeviceClassName:
			return shape, false
		}
		shape.Class = exactly.DeviceClassName
		shape.Count += int(exactly.Count)
	}
	shape.Constraint = constraint.Name
	// A free device is always whole, so sets of one device don't count.
	return shape, 1 < shape.Count && shape.Count <= resourceapi.AllocationResultsMaxSize
}

// Usual returns the shapes to use for a constraint until claims ask for it, most devices first.
func Usual(class, constraint string) []Shape {
	shapes := make([]Shape, len(UsualCounts))
	for i, count := range UsualCounts {
		shapes[i] = Shape{class, constraint, count}
	}
	return shapes
}
