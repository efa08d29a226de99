// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bitset

import (
	"iter"
	"math/bits"
)

// Set is a set of positions. Position i is bit i%64 of word i/64, so that several sets can be
// combined word by word. The bits beyond the end of the list are 0: they would be counted.
//
// A position is not negative: without a sign, dividing it by 64 takes one instruction.
//
// A Set that is handed on is the same set, not a copy. It must not be read while another
// goroutine changes it.
type Set []uint64

// Words is the number of words, of 64 bits each, in a set of positions below n.
func Words(n int) int { return (n + 63) / 64 }

// New returns the empty set of positions below n.
func New(n int) Set { return make(Set, Words(n)) }

// Has reports whether position i is in the set. The set has room for it.
func (s Set) Has(i int) bool { return s[uint(i)/64]&(1<<(uint(i)%64)) != 0 }

// Add adds position i. The set has room for it.
func (s Set) Add(i int) { s[uint(i)/64] |= 1 << (uint(i) % 64) }

// Remove removes position i. The set has room for it.
func (s Set) Remove(i int) { s[uint(i)/64] &^= 1 << (uint(i) % 64) }

// All has the positions in ascending order. It reads a word when it comes to it: what the
// loop adds or removes in the same word is not seen any more, what it adds or removes in later
// words is. [Set.Next] always looks at the set as it is, and takes longer.
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

// Count returns the size of the set.
func (s Set) Count() int {
	count := 0
	for _, word := range s {
		count += bits.OnesCount64(word)
	}
	return count
}

// IsEmpty reports whether there is no position in the set.
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
