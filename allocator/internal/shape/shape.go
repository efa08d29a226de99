// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape describes the sets of devices that claims ask for: a number of devices of a class that satisfy a constraint of
// the class. The policy KeepWhole tries to keep such sets available for other claims, and reports count them.
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

// Shape describes sets of devices: a number of devices of a class that satisfy a constraint of the class. It is comparable.
type Shape struct {
	// Class is the name of a DeviceClass.
	Class string `json:"class"`
	// Constraint is the name of a CEL device constraint that the class defines.
	Constraint string `json:"constraint"`
	// Count is the number of devices, at least 1.
	Count int `json:"count"`
}

// NewClaim returns a claim that asks for one set of the shape.
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

// UsualCounts holds the sizes of sets that KeepWhole keeps available until claims ask for other sizes.
var UsualCounts = []int{16, 8, 4, 2}

// MaxOfClaim is the maximum number of shapes that one claim contributes.
const MaxOfClaim = 4

// MaxOfClass is the maximum number of shapes of one class that [MostAsked] returns.
const MaxOfClass = 8

// AskedFrequency returns the order of magnitude of the number of claims for a shape. Cached results become useless when the
// most frequent shapes change. So a single additional claim should not change their order.
func AskedFrequency(count int) int { return bits.Len(uint(count)) }

// MostAsked returns the shapes that most claims ask for, by [AskedFrequency] and size, at most [MaxOfClass] of each class.
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

// Of returns the shapes that a claim asks for: its sets that must satisfy constraints of its classes, by reference or by
// default. It ignores constraints that the claim itself defines, because no other claim uses them. A set with several classes
// or without a fixed number of devices has no shape.
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
		// Ignore the error here. Allocating the claim reports it.
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

// shapeOf returns the shape of the sets of a constraint. ok is false unless a class defines the constraint and the set has a
// fixed number of devices of one class.
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
			// The request has alternatives or allocationMode All, so its number of devices is not fixed.
			return shape, false
		case ptr.Deref(exactly.AdminAccess, false):
			// A request with admin access takes no devices from other claims.
			return shape, false
		case shape.Class != "" && shape.Class != exactly.DeviceClassName:
			return shape, false
		}
		shape.Class = exactly.DeviceClassName
		shape.Count += int(exactly.Count)
	}
	shape.Constraint = constraint.Name
	// A set of one device breaks only if the device itself is taken, so such shapes don't matter.
	return shape, 1 < shape.Count && shape.Count <= resourceapi.AllocationResultsMaxSize
}

// Usual returns the shapes of a constraint that no claim asks for yet, in descending order of devices.
func Usual(class, constraint string) []Shape {
	shapes := make([]Shape, len(UsualCounts))
	for i, count := range UsualCounts {
		shapes[i] = Shape{class, constraint, count}
	}
	return shapes
}
