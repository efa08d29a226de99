// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "math/bits"

// Bits is a set of devices by their position in the list that was tabulated. Positions are
// not negative: without a sign, dividing them by 64 takes one instruction.
type Bits []uint64

// Words is the length of a set of positions below n.
func Words(n int) int { return (n + 63) / 64 }

// NewBits returns the empty set of positions below n.
func NewBits(n int) Bits { return make(Bits, Words(n)) }

// NewBitsList returns count empty sets of positions below n.
func NewBitsList(count, n int) []Bits {
	words := Words(n)
	all := make(Bits, count*words)
	result := make([]Bits, count)
	for i := range result {
		result[i] = all[i*words : (i+1)*words : (i+1)*words]
	}
	return result
}

// Has tells whether position i is in the set.
func (b Bits) Has(i int) bool { return b[uint(i)/64]&(1<<(uint(i)%64)) != 0 }

// Add adds position i.
func (b Bits) Add(i int) { b[uint(i)/64] |= 1 << (uint(i) % 64) }

// Remove removes position i.
func (b Bits) Remove(i int) { b[uint(i)/64] &^= 1 << (uint(i) % 64) }

// Count returns the size of the set.
func (b Bits) Count() int {
	count := 0
	for _, word := range b {
		count += bits.OnesCount64(word)
	}
	return count
}

// IsEmpty tells whether there is no position in the set.
func (b Bits) IsEmpty() bool {
	for _, word := range b {
		if word != 0 {
			return false
		}
	}
	return true
}

// Next returns the first position in the set that is not below from, or -1.
func (b Bits) Next(from int) int {
	w := from / 64
	if w >= len(b) {
		return -1
	}
	if word := b[w] >> (from % 64) << (from % 64); word != 0 {
		return w*64 + bits.TrailingZeros64(word)
	}
	for w++; w < len(b); w++ {
		if b[w] != 0 {
			return w*64 + bits.TrailingZeros64(b[w])
		}
	}
	return -1
}

// Set makes b equal to other, which has the same length.
func (b Bits) Set(other Bits) { copy(b, other) }

// Clear removes all positions.
func (b Bits) Clear() { clear(b) }

// Join adds the positions of other.
func (b Bits) Join(other Bits) {
	for i, word := range other {
		b[i] |= word
	}
}

// Keep removes the positions that other does not have and tells whether there were
// any.
func (b Bits) Keep(other Bits) (removed bool) {
	var gone uint64
	for i, word := range other {
		gone |= b[i] &^ word
		b[i] &= word
	}
	return gone != 0
}

// Drop removes the positions that other has and tells whether there were any.
func (b Bits) Drop(other Bits) (removed bool) {
	var gone uint64
	for i, word := range other {
		gone |= b[i] & word
		b[i] &^= word
	}
	return gone != 0
}

// CountAnd is the size of the intersection.
func (b Bits) CountAnd(other Bits) int {
	count := 0
	for i, word := range b {
		count += bits.OnesCount64(word & other[i])
	}
	return count
}

// Meets tells whether the two have a position in common.
func (b Bits) Meets(other Bits) bool {
	for i, word := range b {
		if word&other[i] != 0 {
			return true
		}
	}
	return false
}

// IsWithin tells whether other has all positions of b.
func (b Bits) IsWithin(other Bits) bool {
	for i, word := range b {
		if word&^other[i] != 0 {
			return false
		}
	}
	return true
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
