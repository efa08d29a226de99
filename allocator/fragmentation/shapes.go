// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"cmp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Limits on what is looked at: shapes of a class, and shapes at all, those that most claims ask for.
const (
	maxShapesOfClass = 8
	maxShapes        = 64
)

// shapesOf are the shapes to be looked at: what the claims ask for, the usual counts for constraints
// of which nobody asks for any, or the counts that are wanted.
func shapesOf(problem *allocator.Problem, options Options) []Shape {
	asked := map[allocator.Shape]int{}
	for _, claim := range problem.Allocated {
		for _, shape := range allocator.ShapesOf(claim, problem.Classes) {
			asked[shape]++
		}
	}
	classes, err := problem.Classes.List()
	if err != nil {
		return nil
	}
	classes = slices.SortedFunc(slices.Values(classes), func(a, b *resourceapi.DeviceClass) int { return cmp.Compare(a.Name, b.Name) })
	var all []Shape
	for _, class := range classes {
		if options.Class == "" || options.Class == class.Name {
			all = append(all, shapesOfClass(class, asked, options)...)
		}
	}
	all = mostAsked(all, maxShapes)
	slices.SortFunc(all, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(b.Devices, a.Devices))
	})
	return all
}

// mostAsked are those that most claims ask for.
func mostAsked(shapes []Shape, most int) []Shape {
	slices.SortStableFunc(shapes, func(a, b Shape) int { return cmp.Compare(b.Asked, a.Asked) })
	return shapes[:min(len(shapes), most)]
}

func shapesOfClass(class *resourceapi.DeviceClass, asked map[allocator.Shape]int, options Options) []Shape {
	// Of a class with mistakes in it, those that have none.
	definitions, _ := v1alpha1.ClassDefinitions(class)
	var ofClass []Shape
	for _, definition := range definitions {
		if options.Constraint != "" && options.Constraint != definition.Name {
			continue
		}
		var of []allocator.Shape
		for shape := range asked {
			if shape.Class == class.Name && shape.Constraint == definition.Name {
				of = append(of, shape)
			}
		}
		if len(of) == 0 {
			of = allocator.UsualShapes(class.Name, definition.Name)
		}
		if len(options.Counts) > 0 {
			of = nil
			for _, count := range options.Counts {
				of = append(of, allocator.Shape{Class: class.Name, Constraint: definition.Name, Count: count})
			}
		}
		for _, shape := range of {
			ofClass = append(ofClass, Shape{Class: shape.Class, Constraint: shape.Constraint, Devices: shape.Count, Asked: asked[shape]})
		}
	}
	slices.SortFunc(ofClass, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(b.Devices, a.Devices), cmp.Compare(a.Constraint, b.Constraint))
	})
	return mostAsked(ofClass, maxShapesOfClass)
}
