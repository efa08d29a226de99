// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"cmp"
	"slices"
)

// spacing is a condition on the distances of numbers that follow each other when they are sorted, by their places:
//
//	cel.bind(s, devices.map(d, d.index).sort(), lists.range(3).all(i, s[i + 1] == s[i] + 1))
//
// A set is a subsequence of the possible devices in the order of their numbers, and has all chosen ones.
//
//  1. The places that a device may have are found from those of the devices before, as a set of bits: place k+1, if a device at place
//     k is at a right distance and no chosen device is passed over.
//  2. The same is done from the other end.
//  3. What has a place from both ends is in a set. Other devices are removed.
//
// The cost is a look at each pair of devices at a right distance.
type spacing struct {
	leaf *leaf
	// gaps are the distances of the numbers at each place and the next one.
	gaps []limits
	// general is the condition as it is written.
	general condition
}

// anyGap is the distance of two numbers in order.
var anyGap = limits{0, unlimited}

// newSpacing is the condition for two members of a sorted list that follow each other.
func (a *analyzer) newSpacing(order *leaf, place int64, gap limits, general condition) condition {
	n := &spacing{leaf: order, gaps: make([]limits, a.setSize-1), general: general}
	for i := range n.gaps {
		n.gaps[i] = anyGap
	}
	n.gaps[place] = limits{max(0, gap.least), gap.most}
	return n
}

// joinSpacings makes one condition of two on the same sorted list. It is false for anything else.
func joinSpacings(left, right condition) (condition, bool) {
	l, ok := left.(*spacing)
	r, too := right.(*spacing)
	if !ok || !too || l.leaf != r.leaf {
		return nil, false
	}
	joined := &spacing{leaf: l.leaf, gaps: slices.Clone(l.gaps), general: and{l.general, r.general}}
	for i, gap := range r.gaps {
		joined.gaps[i] = limits{max(gap.least, l.gaps[i].least), min(gap.most, l.gaps[i].most)}
	}
	return joined, true
}

func (n *spacing) bound(s *state) Outcome {
	if s.Left == 0 {
		if places, ok := n.places(s); ok {
			return outcomeOf(places.find())
		}
	}
	return n.general.bound(s)
}

func (n *spacing) propagate(s *state) status {
	places, ok := n.places(s)
	if !ok {
		return s.propagate(n.general)
	}
	possible := places.find()
	switch {
	case !possible:
		return failed
	case s.Left == 0:
		return subsumed
	}
	for i, device := range places.order {
		if places.before[i].meets(places.behind[i]) || s.Chosen.Has(int(device)) {
			continue
		}
		s.remove(int(device))
	}
	return noFix
}

// maxPlacesOfSet is how many devices a set has at most: more is not searched.
const maxPlacesOfSet = 256

// placeSet are places in a sorted list.
type placeSet [maxPlacesOfSet / 64]uint64

func (p placeSet) meets(other placeSet) bool {
	for w := range p {
		if p[w]&other[w] != 0 {
			return true
		}
	}
	return false
}

func (p *placeSet) join(other placeSet) {
	for w := range p {
		p[w] |= other[w]
	}
}

func (p *placeSet) keep(other placeSet) {
	for w := range p {
		p[w] &= other[w]
	}
}

// next are the places after these.
func (p placeSet) next() (result placeSet) {
	joinShifted(result[:], p[:], 1)
	return result
}

// last are the places before these.
func (p placeSet) last() (result placeSet) {
	for w := range p {
		result[w] = p[w] >> 1
		if w+1 < len(p) {
			result[w] |= p[w+1] << 63
		}
	}
	return result
}

func placeAt(place int) (result placeSet) {
	result[place/64] = 1 << (place % 64)
	return result
}

// sortedPlaces are the places that devices may have.
type sortedPlaces struct {
	*state
	entries []entry
	// order has the devices that are chosen or possible by their numbers. before are the places of each with the devices before
	// it, and behind with those behind it.
	order          []int32
	before, behind []placeSet
	// firstChosen and lastChosen are the first and the last in the order that are chosen.
	firstChosen, lastChosen int
	// kinds are the different gaps, and the places that have each. longest is the longest gap.
	kinds   []gapKind
	longest int64
	size    int
}

type gapKind struct {
	limits
	at placeSet
}

// places is false if a number is not known.
func (n *spacing) places(s *state) (p *sortedPlaces, ok bool) {
	c := s.column(n.leaf)
	size := s.Chosen.Count() + max(0, s.Left)
	if c == nil || !s.areWithin(c.ints) || c.misbehaviour[far].Meets(s.Chosen) || c.misbehaviour[far].Meets(s.Domain) ||
		size != len(n.gaps)+1 || size > maxPlacesOfSet || !s.spend() {
		return nil, false
	}
	p = &sortedPlaces{state: s, entries: c.entries, size: size}
	for i := range s.Chosen.All() {
		p.order = append(p.order, int32(i))
	}
	if s.Left > 0 {
		for i := range s.Domain.All() {
			p.order = append(p.order, int32(i))
		}
	}
	slices.SortFunc(p.order, func(a, b int32) int { return cmp.Compare(p.number(a), p.number(b)) })
	p.before, p.behind = make([]placeSet, len(p.order)), make([]placeSet, len(p.order))
	for place, gap := range n.gaps {
		p.addKind(gap, place)
		p.longest = max(p.longest, gap.most)
	}
	return p, true
}

func (p *sortedPlaces) addKind(gap limits, place int) {
	for i := range p.kinds {
		if p.kinds[i].limits == gap {
			p.kinds[i].at.join(placeAt(place))
			return
		}
	}
	p.kinds = append(p.kinds, gapKind{gap, placeAt(place)})
}

func (p *sortedPlaces) number(device int32) int64 { return p.entries[device].number.least }

// find is false if there is no set.
func (p *sortedPlaces) find() bool {
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

// findBefore finds the places of a device with those before it.
func (p *sortedPlaces) findBefore(i int) {
	for j := i - 1; j >= 0; j-- {
		distance := p.number(p.order[i]) - p.number(p.order[j])
		if distance > p.longest || !p.spend() {
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

// findBehind finds the places of a device with those behind it.
func (p *sortedPlaces) findBehind(i int) {
	for j := i + 1; j < len(p.order); j++ {
		distance := p.number(p.order[j]) - p.number(p.order[i])
		if distance > p.longest || !p.spend() {
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

// allowed are those of the places after which the distance to the next number is right.
func (p *sortedPlaces) allowed(distance int64, of placeSet) (result placeSet) {
	for _, kind := range p.kinds {
		if kind.least <= distance && distance <= kind.most {
			at := kind.at
			at.keep(of)
			result.join(at)
		}
	}
	return result
}

// sortedDistance reads a condition on two members of a sorted list that follow each other, or of which one is the first and
// one the last:
//
//	devices.map(d, d.index).sort()[1] == devices.map(d, d.index).sort()[0] + 1
//	devices.sortBy(d, d.index)[7].index - devices.sortBy(d, d.index)[0].index == 7
func (a *analyzer) sortedDistance(members []someMember, holds, general condition) (condition, bool) {
	if len(members) != 2 || members[0].order == nil || members[0].order != members[1].order || a.setSize > maxPlacesOfSet {
		return nil, false
	}
	first, last := members[0], members[1]
	if first.place > last.place {
		first, last = last, first
	}
	distance, ok := distanceBetween(first, last, holds)
	if !ok {
		return nil, false
	}
	near := behaves{first.order, far}
	switch {
	case last.place == first.place+1:
		return assuming{near, a.newSpacing(first.order, first.place, distance, general), general}, true
	case first.place == 0 && last.place == int64(a.setSize)-1:
		return assuming{near, a.newSpan(first.order, distance, general), general}, true
	default:
		return nil, false
	}
}

// distanceBetween is that of the numbers by which two members are sorted.
func distanceBetween(first, last someMember, holds condition) (limits, bool) {
	p, ok := holds.(*predicate)
	if !ok || p.negated {
		return limits{}, false
	}
	local, ok := p.holds.(localComparison)
	if !ok {
		return limits{}, false
	}
	sum, right, ok := linearLimits(local.comparison)
	if !ok || len(sum) != 2 || sum[0].factor != -sum[1].factor || sum[0].factor == 0 {
		return limits{}, false
	}
	for i := range sum {
		from, ok := sum[1-i].of.(value)
		to, too := sum[i].of.(value)
		if ok && too && from.isColumn(first.slot) && to.isColumn(last.slot) && from.leaf == first.order && to.leaf == first.order {
			return right.divide(sum[i].factor), true
		}
	}
	return limits{}, false
}
