// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bitset

import (
	"iter"
	"math/bits"
)

// Set is a set of positions. Position i is bit i%64 of word i/64, so that two sets are combined word by word. The bits beyond
// the end of the list must be 0, because Count would count them.
//
// Positions are not negative. They are converted to uint because an unsigned division by 64 takes one instruction.
//
// Copies of a Set share its memory. A Set must not be read while another goroutine changes it.
type Set []uint64

// Words returns the number of 64-bit words in a set of positions below n.
func Words(n int) int { return (n + 63) / 64 }

// New returns the empty set of positions below n.
func New(n int) Set { return make(Set, Words(n)) }

// Has reports whether position i is in the set. i must be below the set's n.
func (s Set) Has(i int) bool { return s[uint(i)/64]&(1<<(uint(i)%64)) != 0 }

// Add adds position i. i must be below the set's n.
func (s Set) Add(i int) { s[uint(i)/64] |= 1 << (uint(i) % 64) }

// Remove removes position i. i must be below the set's n.
func (s Set) Remove(i int) { s[uint(i)/64] &^= 1 << (uint(i) % 64) }

// All yields the positions in ascending order. It copies each word when the loop reaches the word. So the loop does not see
// changes in the current word, but sees changes in later words. [Set.Next] sees all changes and is slower.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for w, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(w*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// Next returns the first position in the set that is not below from, or -1.
func (s Set) Next(from int) int {
	w := from / 64
	if w >= len(s) {
		return -1
	}
	if word := s[w] >> (from % 64) << (from % 64); word != 0 {
		return w*64 + bits.TrailingZeros64(word)
	}
	for w++; w < len(s); w++ {
		if s[w] != 0 {
			return w*64 + bits.TrailingZeros64(s[w])
		}
	}
	return -1
}

// Count returns the number of positions in the set.
func (s Set) Count() int {
	count := 0
	for _, word := range s {
		count += bits.OnesCount64(word)
	}
	return count
}

// IsEmpty reports whether the set has no position.
func (s Set) IsEmpty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// Clear removes all positions.
func (s Set) Clear() { clear(s) }
