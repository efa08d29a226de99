// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// arePaired is list.paired(other, a, b, joined): the relation, and the length of the other list.
func arePaired(relation, others ref.Val) ref.Val {
	rows, failure := rowsOf(relation)
	if failure != nil {
		return failure
	}
	count, ok := others.(types.Int)
	if !ok {
		return types.MaybeNoSuchOverloadErr(others)
	}
	for _, row := range rows {
		if len(row) != int(count) {
			return types.MaybeNoSuchOverloadErr(relation)
		}
	}
	return types.Bool(ArePaired(len(rows), int(count), func(a, b int) bool { return rows[a][b] }))
}

// ArePaired reports whether the elements of two lists of the given lengths can be paired. If one is
// longer, each element of the other gets the same number of partners.
func ArePaired(length, others int, joined func(a, b int) bool) bool {
	longer, shorter, of := length, others, joined
	if length < others {
		longer, shorter, of = others, length, func(a, b int) bool { return joined(b, a) }
	}
	if shorter == 0 || longer%shorter != 0 {
		return longer == 0
	}
	return NewPairing(longer, shorter, longer/shorter, of).All()
}

// Pairing gives elements of one list a partner in another, in which each takes some.
type Pairing struct {
	count, others, each int
	joined              func(a, b int) bool
	// partners are those of each of the others; asked are the others that were asked to make room.
	partners [][]int
	asked    []bool
}

// NewPairing is for a list of the given length, and another of which each element takes so many.
func NewPairing(length, others, each int, joined func(a, b int) bool) *Pairing {
	return &Pairing{length, others, each, joined, make([][]int, others), make([]bool, others)}
}

// All reports whether each element gets a partner.
func (p *Pairing) All() bool {
	for a := range p.count {
		clear(p.asked)
		if !p.pair(a) {
			return false
		}
	}
	return true
}

// pair finds a partner for an element. Those that are paired may have to take another one.
func (p *Pairing) pair(a int) bool {
	for b := range p.others {
		if p.asked[b] || !p.joined(a, b) {
			continue
		}
		p.asked[b] = true
		if len(p.partners[b]) < p.each {
			p.partners[b] = append(p.partners[b], a)
			return true
		}
		for i, other := range p.partners[b] {
			if p.pair(other) {
				p.partners[b][i] = a
				return true
			}
		}
	}
	return false
}
