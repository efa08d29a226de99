// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// arePaired implements list.paired(other, a, b, joined). relation is the matrix of joined, and others the length of the other
// list.
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

// ArePaired reports whether the elements of two lists with these lengths can be paired. If one list is longer, each element of
// the shorter list gets the same number of partners.
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

// Pairing is a matching: it assigns each element of one list a partner in another list. A partner has a fixed number of places.
type Pairing struct {
	count, others, each int
	joined              func(a, b int) bool
	// partners[i] has the elements assigned to partner i. asked marks the partners that were tried for the current element.
	partners [][]int
	asked    []bool
}

// NewPairing returns an empty pairing. length is the number of elements, others the number of partners, and each the number of
// elements per partner.
func NewPairing(length, others, each int, joined func(a, b int) bool) *Pairing {
	return &Pairing{length, others, each, joined, make([][]int, others), make([]bool, others)}
}

// All assigns partners to all elements, and reports whether it succeeded.
func (p *Pairing) All() bool {
	for a := range p.count {
		clear(p.asked)
		if !p.pair(a) {
			return false
		}
	}
	return true
}

// pair assigns a partner to element a. If a partner is full, pair tries to move one of its elements to another (an augmenting
// path).
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
