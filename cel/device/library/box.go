// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import (
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// inBox is list.box(d, at, sides, circles); circles may be nil.
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
		return types.NewErr("box has %d sides and %d circles", len(want), len(around))
	}
	if i := slices.IndexFunc(around, func(n int64) bool { return n < 0 }); i >= 0 {
		return types.NewErr("box has a circle of %d places", around[i])
	}
	// A list for each coordinate.
	at := make([][]int64, len(want))
	failure = each(places, func(place ref.Val) ref.Val {
		coordinates, failure := intsOf(place)
		if failure != nil {
			return failure
		}
		if len(coordinates) != len(want) {
			return types.NewErr("box has %d sides for %d coordinates", len(want), len(coordinates))
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

// IsBox reports whether the bounding box has the sides, in any order. at has a list for each coordinate,
// with a number for each element; circles has for each coordinate the number of places of a circle, zero
// if it does not go around. The three are of one length.
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

// Extent counts the places from the smallest of the numbers to the greatest one, both included; or on a
// circle of so many places, if that is not zero, those of the shortest arc with all numbers. There must
// be a number. ok is false if they are more than an int64 can count.
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
	// The arc leaves out the widest gap.
	gap := least + circle - most
	for i, n := range sorted[1:] {
		gap = max(gap, n-sorted[i])
	}
	return circle - gap + 1, true
}

// Around is a number modulo the places of a circle, from 0 on.
func Around(n, circle int64) int64 {
	if n %= circle; n < 0 {
		n += circle
	}
	return n
}
