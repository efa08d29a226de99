// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"
	"slices"

	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// maxPositionsOfSet is the maximum size of a set of devices for the computation of positions.
const maxPositionsOfSet = 256

// A positionSet is a set of positions in a sorted list.
type positionSet [maxPositionsOfSet / 64]uint64

func (p positionSet) meets(other positionSet) bool {
	for w := range p {
		if p[w]&other[w] != 0 {
			return true
		}
	}
	return false
}

func (p *positionSet) join(other positionSet) {
	for w := range p {
		p[w] |= other[w]
	}
}

func (p *positionSet) keep(other positionSet) {
	for w := range p {
		p[w] &= other[w]
	}
}

// next returns each position plus one.
func (p positionSet) next() (result positionSet) {
	joinShifted(result[:], p[:], 1)
	return result
}

// last returns each position minus one.
func (p positionSet) last() (result positionSet) {
	for w := range p {
		result[w] = p[w] >> 1
		if w+1 < len(p) {
			result[w] |= p[w+1] << 63
		}
	}
	return result
}

func placeAt(place int) (result positionSet) {
	result[place/64] = 1 << (place % 64)
	return result
}

// sortedPositions computes the positions that devices may have in the sorted list of a complete set.
type sortedPositions struct {
	*propagate.State
	entries []propagate.Entry
	// order has the chosen and possible devices sorted by number. before[i] has the positions of device order[i] that the
	// devices before it allow. behind[i] has the positions that the devices behind it allow.
	order          []int32
	before, behind []positionSet
	// firstChosen and lastChosen are the indexes of the first and the last chosen device in order.
	firstChosen, lastChosen int
	// kinds has each different gap with the positions where it is required. longest is the longest gap.
	kinds   []gapKind
	longest int64
	size    int
}

type gapKind struct {
	outcome.Limits
	at positionSet
}

// newSortedPositions sorts the devices by number. It returns false if a number is not known or too far from zero.
func newSortedPositions(s *propagate.State, of *propagate.Leaf, gaps []outcome.Limits) (p *sortedPositions, ok bool) {
	c := s.Column(of)
	size := s.Chosen.Count() + max(0, s.Left)
	if c == nil || !s.AreWithin(c.Ints) || c.Misbehaviour[propagate.Far].Meets(s.Chosen) || c.Misbehaviour[propagate.Far].Meets(s.Domain) ||
		size != len(gaps)+1 || size > maxPositionsOfSet || !s.Spend() {
		return nil, false
	}
	p = &sortedPositions{State: s, entries: c.Entries, size: size}
	for i := range s.Chosen.All() {
		p.order = append(p.order, int32(i))
	}
	if s.Left > 0 {
		for i := range s.Domain.All() {
			p.order = append(p.order, int32(i))
		}
	}
	slices.SortFunc(p.order, func(a, b int32) int { return cmp.Compare(p.number(a), p.number(b)) })
	p.before, p.behind = make([]positionSet, len(p.order)), make([]positionSet, len(p.order))
	for place, gap := range gaps {
		p.addKind(gap, place)
		p.longest = max(p.longest, gap.Most)
	}
	return p, true
}

func (p *sortedPositions) addKind(gap outcome.Limits, place int) {
	for i := range p.kinds {
		if p.kinds[i].Limits == gap {
			p.kinds[i].at.join(placeAt(place))
			return
		}
	}
	p.kinds = append(p.kinds, gapKind{gap, placeAt(place)})
}

func (p *sortedPositions) number(device int32) int64 { return p.entries[device].Number.Least }

// find computes before and behind. It returns false if no completion satisfies the gaps.
func (p *sortedPositions) find() bool {
	p.firstChosen, p.lastChosen = len(p.order), -1
	for i, device := range p.order {
		if p.Chosen.Has(int(device)) {
			p.firstChosen, p.lastChosen = min(i, p.firstChosen), i
		}
	}
	for i := range p.order {
		p.findBefore(i)
	}
	for i := len(p.order) - 1; i >= 0; i-- {
		p.findBehind(i)
	}
	found := false
	for i, device := range p.order {
		has := p.before[i].meets(p.behind[i])
		if !has && p.Chosen.Has(int(device)) {
			return false
		}
		found = found || has
	}
	return found
}

// findBefore computes before[i]: the positions of device order[i] that the devices before it allow.
func (p *sortedPositions) findBefore(i int) {
	for j := i - 1; j >= 0; j-- {
		distance := p.number(p.order[i]) - p.number(p.order[j])
		if distance > p.longest || !p.Spend() {
			break
		}
		p.before[i].join(p.allowed(distance, p.before[j]).next())
		if p.Chosen.Has(int(p.order[j])) {
			break
		}
	}
	if i <= p.firstChosen {
		p.before[i].join(placeAt(0))
	}
}

// findBehind computes behind[i]: the positions of device order[i] that the devices behind it allow.
func (p *sortedPositions) findBehind(i int) {
	for j := i + 1; j < len(p.order); j++ {
		distance := p.number(p.order[j]) - p.number(p.order[i])
		if distance > p.longest || !p.Spend() {
			break
		}
		p.behind[i].join(p.allowed(distance, p.behind[j].last()))
		if p.Chosen.Has(int(p.order[j])) {
			break
		}
	}
	if i >= p.lastChosen {
		p.behind[i].join(placeAt(p.size - 1))
	}
}

// allowed returns the positions of the set that may have this distance to the next number in the list.
func (p *sortedPositions) allowed(distance int64, of positionSet) (result positionSet) {
	for _, kind := range p.kinds {
		if kind.Least <= distance && distance <= kind.Most {
			at := kind.at
			at.keep(of)
			result.join(at)
		}
	}
	return result
}
