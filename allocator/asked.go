// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// MaxShapesOfClaim bounds what one claim says about what others may ask for.
const MaxShapesOfClaim = 4

// ShapesOf are the shapes that a claim asks for: the sets that it wants to satisfy constraints which
// its classes define, with a reference or by default. A claim that defines a constraint itself asks
// for what others won't, and so does one that wants devices of several classes together, or does not
// say how many.
func ShapesOf(claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter) []Shape {
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
		if ok && !slices.Contains(shapes, shape) && len(shapes) < MaxShapesOfClaim {
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

// UsualShapes are those of a constraint that nobody has asked for yet, most devices first.
func UsualShapes(class, constraint string) []Shape {
	shapes := make([]Shape, len(unaskedCounts))
	for i, count := range unaskedCounts {
		shapes[i] = Shape{class, constraint, count}
	}
	return shapes
}
