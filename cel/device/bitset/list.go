// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bitset

// List is several sets of positions of the same list of devices, in one piece of memory:
// who needs many small ones at a time allocates once.
type List struct {
	words Set
	// width is the number of words of a set.
	width int
}

// NewList returns count empty sets of positions below n.
func NewList(count, n int) List {
	width := Words(n)
	return List{make(Set, count*width), width}
}

// At returns set number i, from 0. It is part of the list, not a copy.
func (l List) At(i int) Set {
	return l.words[i*l.width : (i+1)*l.width : (i+1)*l.width]
}

// Cut returns the first count sets and those after them.
func (l List) Cut(count int) (first, rest List) {
	end := count * l.width
	return List{l.words[:end:end], l.width}, List{l.words[end:], l.width}
}
