// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"iter"
	"math/bits"
)

// Set is a set of devices of a node, a bit each in the order in which they are published.
type Set uint32

func (s Set) len() int           { return bits.OnesCount32(uint32(s)) }
func (s Set) has(other Set) bool { return s&other == other }

// members are the places of the devices.
func (s Set) members() iter.Seq[int] {
	return func(yield func(int) bool) {
		for rest := s; rest != 0; rest &= rest - 1 {
			if !yield(bits.TrailingZeros32(uint32(rest))) {
				return
			}
		}
	}
}

// subsets are those of a size, in the order of an allocator: by the first device, by the second.
func (s Set) subsets(size int) iter.Seq[Set] {
	return func(yield func(Set) bool) {
		s.extend(0, size, yield)
	}
}

func (s Set) extend(chosen Set, size int, yield func(Set) bool) bool {
	if size == 0 {
		return yield(chosen)
	}
	for rest := s; rest.len() >= size; {
		next := rest & -rest
		rest &^= next
		if !rest.extend(chosen|next, size-1, yield) {
			return false
		}
	}
	return true
}
