// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bitset

// List is several sets in a single allocation. All sets have the same length.
type List struct {
	words Set
	// width is the number of words per set.
	width int
}

// NewList returns count empty sets for positions below n.
func NewList(count, n int) List {
	width := Words(n)
	return List{make(Set, count*width), width}
}

// At returns set number i, counted from 0. The set shares memory with the list.
func (l List) At(i int) Set {
	return l.words[i*l.width : (i+1)*l.width : (i+1)*l.width]
}

// Cut returns a list of the first count sets and a list of the others.
func (l List) Cut(count int) (first, rest List) {
	end := count * l.width
	return List{l.words[:end:end], l.width}, List{l.words[end:], l.width}
}
