// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
)

// predicate is a condition on the devices that one or two variables stand for, such
// as d != o && d.row == o.row. It does not speak of the set. Its verdicts are kept as
// rows of bits: counting the devices for which it holds is counting bits.
type predicate struct {
	// holds is what the rows are made from.
	holds condition
	// slots are those of the variables.
	slots []int
	// index is the place in Analysis.predicates. Predicates that differ in their
	// variables only share it.
	index int
	// negated: it is the opposite that is meant.
	negated bool
}

// speaksOf reports whether the slot is one of the predicate's variables.
func (p *predicate) speaksOf(slot int) bool { return slices.Contains(p.slots, slot) }

func (p *predicate) negation() condition { return p.negate() }

func (p *predicate) negate() *predicate {
	opposite := *p
	opposite.negated = !p.negated
	return &opposite
}

// row returns the row over the devices that the slot may have, the other slots being
// as they are. The predicate must speak of the slot.
func (p *predicate) row(s *state, slot int) *row {
	if len(p.slots) == 1 {
		return p.rowAt(s, 0, 0)
	}
	if p.slots[0] == slot {
		return p.rowAt(s, 0, s.slots[p.slots[1]])
	}
	return p.rowAt(s, 1, s.slots[p.slots[0]])
}

// rowAt returns the row over one of the two variables, the other standing for a device.
func (p *predicate) rowAt(s *state, over, outer int) *row {
	r := p.rowsOver(s, over)[outer].Load()
	if r == nil {
		r = p.fill(s, over, outer)
	}
	if r.aborts {
		s.aborted = true
	}
	return r
}

// rowsOver has the rows over one of the two variables that were made before.
func (p *predicate) rowsOver(s *state, over int) rows {
	if p.negated {
		return s.tables.predicates[p.index].opposites[over]
	}
	return s.tables.predicates[p.index].rows[over]
}

// fill makes a row, once for all searches.
func (p *predicate) fill(s *state, over, outer int) *row {
	t := &s.tables.predicates[p.index]
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if r := p.rowsOver(s, over)[outer].Load(); r != nil {
		return r
	}
	r := p.filled(s, over, outer, t)
	if s.err == nil {
		t.opposites[over][outer].Store(r.opposite)
		t.rows[over][outer].Store(r)
	}
	if p.negated {
		return r.opposite
	}
	return r
}

// filled is the row of a device, that of one like it if there is.
func (p *predicate) filled(s *state, over, outer int, t *predicateTable) *row {
	first := outer
	if alike := t.classesAt(s, 1-over); alike != nil {
		first = alike.first[alike.of[outer]]
		if r := t.rows[over][first].Load(); r != nil {
			return r
		}
	}
	if len(p.slots) == maxArity {
		s.slots[p.slots[1-over]] = outer
	}
	r := p.newRow(s, p.slots[over], t.classesAt(s, over))
	if s.err == nil {
		t.opposites[over][first].Store(r.opposite)
		t.rows[over][first].Store(r)
		s.addToTables(2*int(unsafe.Sizeof(row{})) + 5*8*bitset.Words(len(s.tables.devices)))
	}
	return r
}

// isExactFor reports whether the predicate is either true or false for the devices, whichever of them the variables
// stand for.
func (p *predicate) isExactFor(s *state, devices bitset.Set) bool {
	if len(p.slots) == 1 {
		return p.rowAt(s, 0, 0).isExact(devices)
	}
	// To fill a row the other variable stands for its device.
	other := p.slots[1]
	before := s.slots[other]
	defer func() { s.slots[other] = before }()
	for i := range devices.All() {
		if !s.spend() || !p.rowAt(s, 0, i).isExact(devices) {
			return false
		}
	}
	return true
}

// isSettled reports whether the predicate is either true or false for any two devices that are chosen or possible.
func (p *predicate) isSettled(s *state) bool {
	if s.settled == nil {
		s.settled = make([]bitset.Set, len(s.tables.predicates))
	}
	// Devices are mostly removed: what was found for more of them still holds.
	known := s.settled[p.index]
	if known != nil && s.areWithin(known) {
		return true
	}
	all := slices.Clone(s.Chosen)
	if s.Left > 0 {
		all.Join(s.Domain)
	}
	if !p.isExactFor(s, all) {
		return false
	}
	s.settled[p.index] = all
	return true
}

// newRow asks once for devices that are alike.
func (p *predicate) newRow(s *state, slot int, alike *classes) *row {
	n := len(s.tables.devices)
	r := &row{yes: bitset.New(n), no: bitset.New(n), maybe: bitset.New(n), maybeNot: bitset.New(n), fails: bitset.New(n)}
	aborted, before := s.aborted, s.slots[slot]
	s.aborted = false
	add := func(i int, to func(bitset.Set)) {
		s.slots[slot] = i
		is := p.holds.bound(s)
		switch is {
		case outcome.True:
			to(r.yes)
		case outcome.False:
			to(r.no)
		}
		if is.May(outcome.True) {
			to(r.maybe)
		}
		if is.May(outcome.False) {
			to(r.maybeNot)
		}
		if is.May(outcome.Error) {
			to(r.fails)
		}
	}
	if alike != nil {
		for class, i := range alike.first {
			add(i, func(to bitset.Set) { to.Join(alike.members[class]) })
		}
	} else {
		for i := range n {
			add(i, func(to bitset.Set) { to.Add(i) })
		}
	}
	r.exact = r.fails.IsEmpty() && !r.maybe.Meets(r.maybeNot)
	r.aborts = s.aborted
	r.opposite = &row{yes: r.no, no: r.yes, maybe: r.maybeNot, maybeNot: r.maybe, fails: r.fails, exact: r.exact, aborts: r.aborts, opposite: r}
	s.aborted, s.slots[slot] = aborted, before
	return r
}

func (p *predicate) bound(s *state) outcome.Outcome {
	slot := p.slots[len(p.slots)-1]
	r, device := p.row(s, slot), s.slots[slot]
	var result outcome.Outcome
	if r.maybe.Has(device) {
		result |= outcome.True
	}
	if r.maybeNot.Has(device) {
		result |= outcome.False
	}
	if r.fails.Has(device) {
		result |= outcome.Error
	}
	return result
}

// propagate: the verdict does not depend on what else is chosen.
func (p *predicate) propagate(s *state) status { return statusOf(p.bound(s)) }

// counts is how many devices of the set for which the predicate holds.
func (r *row) counts(s *state) counts {
	others := s.Domain.Count() - s.Domain.CountAnd(r.yes)
	return counts{
		fewest: s.Chosen.CountAnd(r.yes) + max(0, s.Left-others),
		most:   s.Chosen.CountAnd(r.maybe) + min(s.Left, s.Domain.CountAnd(r.maybe)),
		fails:  s.Chosen.Meets(r.fails) || s.Left > 0 && s.Domain.Meets(r.fails),
	}
}
