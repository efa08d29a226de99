// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bitset

import "math/bits"

// Methods that take another set require a set of the same list of devices, and so of the same length.

// SetTo makes s equal to other.
func (s Set) SetTo(other Set) { copy(s, other) }

// Join adds the positions of other.
func (s Set) Join(other Set) {
	for w, word := range other {
		s[w] |= word
	}
}

// Keep removes from s the positions that other does not have. It reports whether it removed any.
func (s Set) Keep(other Set) (removed bool) {
	var gone uint64
	for w, word := range other {
		gone |= s[w] &^ word
		s[w] &= word
	}
	return gone != 0
}

// Drop removes from s the positions that other has. It reports whether it removed any.
func (s Set) Drop(other Set) (removed bool) {
	var gone uint64
	for w, word := range other {
		gone |= s[w] & word
		s[w] &^= word
	}
	return gone != 0
}

// CountAnd returns the size of the intersection.
func (s Set) CountAnd(other Set) int {
	count := 0
	for w, word := range s {
		count += bits.OnesCount64(word & other[w])
	}
	return count
}

// Meets reports whether the sets have a position in common.
func (s Set) Meets(other Set) bool {
	for w, word := range s {
		if word&other[w] != 0 {
			return true
		}
	}
	return false
}

// IsWithin reports whether other has all positions of s.
func (s Set) IsWithin(other Set) bool {
	for w, word := range s {
		if word&^other[w] != 0 {
			return false
		}
	}
	return true
}
