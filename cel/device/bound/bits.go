// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "math/bits"

// Bits is a set of devices by their position in the list that was tabulated.
type Bits []uint64

// NewBits returns the empty set of positions below n.
func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

// Has tells whether position i is in the set.
func (b Bits) Has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// Add adds position i.
func (b Bits) Add(i int) { b[i/64] |= 1 << (i % 64) }

// Remove removes position i.
func (b Bits) Remove(i int) { b[i/64] &^= 1 << (i % 64) }

// Count returns the size of the set.
func (b Bits) Count() int {
	count := 0
	for _, word := range b {
		count += bits.OnesCount64(word)
	}
	return count
}

// Set makes b equal to other, which has the same length.
func (b Bits) Set(other Bits) { copy(b, other) }

// Clear removes all positions.
func (b Bits) Clear() {
	for i := range b {
		b[i] = 0
	}
}

// countAnd is the size of the intersection.
func (b Bits) countAnd(other Bits) int {
	count := 0
	for i, word := range b {
		count += bits.OnesCount64(word & other[i])
	}
	return count
}

// each calls f for the positions in ascending order until it returns false.
func (b Bits) each(f func(i int) bool) {
	for w, word := range b {
		for word != 0 {
			i := bits.TrailingZeros64(word)
			word &^= 1 << i
			if !f(w*64 + i) {
				return
			}
		}
	}
}
