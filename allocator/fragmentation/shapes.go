// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"cmp"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// These are the limits on shapes for a class and for a report. The shapes with the most requests are kept. They are chosen in
// rounds, with one shape of each namespace in a round. So a namespace can't displace the shapes of others.
const (
	maxShapesOfClass = 8
	maxShapes        = 64
)

// shapesOf returns the shapes to count: for each constraint, the shapes that claims ask for. If no claim asks for the
// constraint or options.Usual is true, it adds [allocator.UsualShapes]. If options.Counts is not empty, it uses only these
// counts.
func shapesOf(problem *allocator.Problem, options Options) []Shape {
	asked, ofNamespaces := map[allocator.Shape]int{}, map[string]map[allocator.Shape]int{}
	for _, claim := range problem.Allocated {
		for _, shape := range allocator.ShapesOf(claim, problem.Classes) {
			asked[shape]++
			if ofNamespaces[claim.Namespace] == nil {
				ofNamespaces[claim.Namespace] = map[allocator.Shape]int{}
			}
			ofNamespaces[claim.Namespace][shape]++
		}
	}
	turns := roundsOf(ofNamespaces)
	classes, err := problem.Classes.List()
	if err != nil {
		return nil
	}
	classes = slices.SortedFunc(slices.Values(classes), func(a, b *resourceapi.DeviceClass) int { return cmp.Compare(a.Name, b.Name) })
	var all []Shape
	for _, class := range classes {
		if options.Class == "" || options.Class == class.Name {
			all = append(all, shapesOfClass(class, asked, turns, options)...)
		}
	}
	all = mostAsked(all, turns, maxShapes)
	slices.SortFunc(all, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(b.Devices, a.Devices))
	})
	return all
}

// roundsOf maps each shape to the round that chooses it. Round 0 chooses the shape that each namespace asks for most.
func roundsOf(ofNamespaces map[string]map[allocator.Shape]int) map[allocator.Shape]int {
	turns := map[allocator.Shape]int{}
	for _, asked := range ofNamespaces {
		inOrder := slices.SortedFunc(maps.Keys(asked), func(a, b allocator.Shape) int {
			return cmp.Or(cmp.Compare(asked[b], asked[a]), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Constraint, b.Constraint))
		})
		for turn, shape := range inOrder {
			if former, has := turns[shape]; !has || turn < former {
				turns[shape] = turn
			}
		}
	}
	return turns
}

// mostAsked returns at most most shapes in the order of their rounds. Shapes that no claim asks for are last.
func mostAsked(shapes []Shape, turns map[allocator.Shape]int, most int) []Shape {
	slices.SortStableFunc(shapes, func(a, b Shape) int {
		if a.Asked == 0 || b.Asked == 0 {
			return cmp.Compare(b.Asked, a.Asked)
		}
		return cmp.Or(cmp.Compare(turns[a.shape()], turns[b.shape()]), cmp.Compare(b.Asked, a.Asked))
	})
	return shapes[:min(len(shapes), most)]
}

func shapesOfClass(class *resourceapi.DeviceClass, asked, turns map[allocator.Shape]int, options Options) []Shape {
	// If the class contains invalid definitions, use the valid definitions only.
	definitions, _ := v1alpha1.ClassDefinitions(class)
	var ofClass []Shape
	for _, definition := range definitions {
		if options.Constraint != "" && options.Constraint != definition.Name {
			continue
		}
		var of, usual []allocator.Shape
		for shape := range asked {
			if shape.Class == class.Name && shape.Constraint == definition.Name {
				of = append(of, shape)
			}
		}
		if len(of) == 0 {
			of = allocator.UsualShapes(class.Name, definition.Name)
		} else if options.Usual {
			usual = slices.DeleteFunc(allocator.UsualShapes(class.Name, definition.Name), func(shape allocator.Shape) bool { return asked[shape] > 0 })
		}
		if len(options.Counts) > 0 {
			of, usual = nil, nil
			for _, count := range options.Counts {
				of = append(of, allocator.Shape{Class: class.Name, Constraint: definition.Name, Count: count})
			}
		}
		for i, shape := range append(of, usual...) {
			ofClass = append(ofClass, Shape{Class: shape.Class, Constraint: shape.Constraint, Devices: shape.Count, Asked: asked[shape], onlyUsual: i >= len(of)})
		}
	}
	slices.SortFunc(ofClass, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(b.Devices, a.Devices), cmp.Compare(a.Constraint, b.Constraint))
	})
	return mostAsked(ofClass, turns, maxShapesOfClass)
}
