// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import (
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// inBox implements list.box(d, at, sides, circles). circles is nil if the call has no circles.
func inBox(places, sides, circles ref.Val) ref.Val {
	want, failure := intsOf(sides)
	if failure != nil {
		return failure
	}
	around := make([]int64, len(want))
	if circles != nil {
		if around, failure = intsOf(circles); failure != nil {
			return failure
		}
	}
	if len(around) != len(want) {
		return types.NewErr("box has %d sides, but %d circles", len(want), len(around))
	}
	if i := slices.IndexFunc(around, func(n int64) bool { return n < 0 }); i >= 0 {
		return types.NewErr("box has a circle of %d places: use zero or more", around[i])
	}
	// at[i] has coordinate i of all elements.
	at := make([][]int64, len(want))
	failure = each(places, func(place ref.Val) ref.Val {
		coordinates, failure := intsOf(place)
		if failure != nil {
			return failure
		}
		if len(coordinates) != len(want) {
			return types.NewErr("box has %d sides, but an element has %d coordinates", len(want), len(coordinates))
		}
		for i, n := range coordinates {
			at[i] = append(at[i], n)
		}
		return nil
	})
	if failure != nil {
		return failure
	}
	return types.Bool(IsBox(at, want, around))
}

// IsBox reports whether a bounding box has the given sides, in any order. Each parameter has one entry per coordinate. at has
// the coordinate's numbers of all elements, sides the wanted lengths, and circles the length of the circle, or zero for a line.
func IsBox(at [][]int64, sides, circles []int64) bool {
	extents := make([]int64, len(at))
	for i, numbers := range at {
		if len(numbers) == 0 {
			return false
		}
		var ok bool
		if extents[i], ok = Extent(numbers, circles[i]); !ok {
			return false
		}
	}
	wanted := slices.Clone(sides)
	slices.Sort(wanted)
	slices.Sort(extents)
	return slices.Equal(wanted, extents)
}

// Extent returns the number of positions from the smallest to the greatest number, including both. If circle is not zero, the
// numbers are on a circle of that length, and Extent returns the length of the shortest arc that contains them. numbers must not
// be empty. ok is false if the result overflows an int64.
func Extent(numbers []int64, circle int64) (places int64, ok bool) {
	sorted := slices.Clone(numbers)
	if circle > 0 {
		for i, n := range sorted {
			sorted[i] = Around(n, circle)
		}
	}
	slices.Sort(sorted)
	least, most := sorted[0], sorted[len(sorted)-1]
	if circle == 0 {
		places = most - least
		return places + 1, places >= 0 && places+1 > 0
	}
	// The shortest arc omits the widest gap between two numbers.
	gap := least + circle - most
	for i, n := range sorted[1:] {
		gap = max(gap, n-sorted[i])
	}
	return circle - gap + 1, true
}

// Around returns n modulo the length of a circle, as a number from 0 to circle-1.
func Around(n, circle int64) int64 {
	if n %= circle; n < 0 {
		n += circle
	}
	return n
}
