// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
)

// A Predicate is a condition on one or two devices, such as d != o && d.row == o.row. It does not refer to the set. Its
// verdicts are stored as rows of bits, so counting the devices that satisfy the predicate is counting bits.
type Predicate struct {
	// Holds is the condition that computes the verdicts.
	Holds Condition
	// Slots has the slot of each variable of the predicate.
	Slots []int
	// Index is the index in Problem.Predicates. Predicates that differ only in the names of variables share an index.
	Index int
	// Negated means that this predicate is true where Holds is false, and the reverse.
	Negated bool
}

// HasVariable reports whether the slot is one of the predicate's variables.
func (p *Predicate) HasVariable(slot int) bool { return slices.Contains(p.Slots, slot) }

// Negation returns the negation as a condition.
func (p *Predicate) Negation() Condition { return p.Negate() }

// Negate returns the negation as a predicate.
func (p *Predicate) Negate() *Predicate {
	opposite := *p
	opposite.Negated = !p.Negated
	return &opposite
}

// Row returns the verdicts for all devices in the given slot. The other variable keeps its current device. The slot must be a
// variable of the predicate.
func (p *Predicate) Row(s *State, slot int) *Row {
	if len(p.Slots) == 1 {
		return p.RowAt(s, 0, 0)
	}
	if p.Slots[0] == slot {
		return p.RowAt(s, 0, s.Slots[p.Slots[1]])
	}
	return p.RowAt(s, 1, s.Slots[p.Slots[0]])
}

// RowAt returns the verdicts for all devices as variable over (0 or 1), with the device outer as the other variable.
func (p *Predicate) RowAt(s *State, over, outer int) *Row {
	r := p.RowsOver(s, over)[outer].Load()
	if r == nil {
		r = p.fill(s, over, outer)
	}
	if r.aborts {
		s.aborted = true
	}
	return r
}

// RowsOver returns the rows over one variable (0 or 1), indexed by the device of the other. Rows that are not computed yet are
// nil.
func (p *Predicate) RowsOver(s *State, over int) rows {
	if p.Negated {
		return s.tables.predicates[p.Index].opposites[over]
	}
	return s.tables.predicates[p.Index].rows[over]
}

// fill computes a row and stores it for all searches, unless CEL could not be called.
func (p *Predicate) fill(s *State, over, outer int) *Row {
	t := &s.tables.predicates[p.Index]
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if r := p.RowsOver(s, over)[outer].Load(); r != nil {
		return r
	}
	r := p.filled(s, over, outer, t)
	if s.Err == nil {
		t.opposites[over][outer].Store(r.opposite)
		t.rows[over][outer].Store(r)
	}
	if p.Negated {
		return r.opposite
	}
	return r
}

// filled computes the row with outer as the other variable. Devices of the same class share a row.
func (p *Predicate) filled(s *State, over, outer int, t *predicateTable) *Row {
	first := outer
	if alike := t.classesAt(s, 1-over); alike != nil {
		first = alike.first[alike.of[outer]]
		if r := t.rows[over][first].Load(); r != nil {
			return r
		}
	}
	if len(p.Slots) == MaxArity {
		s.Slots[p.Slots[1-over]] = outer
	}
	r := p.newRow(s, p.Slots[over], t.classesAt(s, over))
	if s.Err == nil {
		t.opposites[over][first].Store(r.opposite)
		t.rows[over][first].Store(r)
		s.addToTables(2*int(unsafe.Sizeof(Row{})) + 5*8*bitset.Words(len(s.tables.devices)))
	}
	return r
}

// IsExactFor reports whether the predicate is decided (true or false, without error) for every combination of the devices.
func (p *Predicate) IsExactFor(s *State, devices bitset.Set) bool {
	if len(p.Slots) == 1 {
		return p.RowAt(s, 0, 0).IsExact(devices)
	}
	// RowAt may overwrite the slot of the other variable, so restore it.
	other := p.Slots[1]
	before := s.Slots[other]
	defer func() { s.Slots[other] = before }()
	for i := range devices.All() {
		if !s.Spend() || !p.RowAt(s, 0, i).IsExact(devices) {
			return false
		}
	}
	return true
}

// IsSettled reports whether the predicate is decided (true or false, without error) for any two chosen or possible devices.
func (p *Predicate) IsSettled(s *State) bool {
	if s.settled == nil {
		s.settled = make([]bitset.Set, len(s.tables.predicates))
	}
	// A result for a superset of the devices still holds. It is reused, because a search mostly removes devices.
	known := s.settled[p.Index]
	if known != nil && s.AreWithin(known) {
		return true
	}
	all := slices.Clone(s.Chosen)
	if s.Left > 0 {
		all.Join(s.Domain)
	}
	if !p.IsExactFor(s, all) {
		return false
	}
	s.settled[p.Index] = all
	return true
}

// newRow evaluates the predicate once for each class of devices, or once for each device if there are no classes.
func (p *Predicate) newRow(s *State, slot int, alike *classes) *Row {
	n := len(s.tables.devices)
	r := &Row{Yes: bitset.New(n), no: bitset.New(n), maybe: bitset.New(n), maybeNot: bitset.New(n), fails: bitset.New(n)}
	aborted, before := s.aborted, s.Slots[slot]
	s.aborted = false
	add := func(i int, to func(bitset.Set)) {
		s.Slots[slot] = i
		is := p.Holds.Bound(s)
		switch is {
		case outcome.True:
			to(r.Yes)
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
	r.Exact = r.fails.IsEmpty() && !r.maybe.Meets(r.maybeNot)
	r.aborts = s.aborted
	r.opposite = &Row{Yes: r.no, no: r.Yes, maybe: r.maybeNot, maybeNot: r.maybe, fails: r.fails, Exact: r.Exact, aborts: r.aborts, opposite: r}
	s.aborted, s.Slots[slot] = aborted, before
	return r
}

// Bound returns the verdict for the devices that are currently in the predicate's slots.
func (p *Predicate) Bound(s *State) outcome.Outcome {
	slot := p.Slots[len(p.Slots)-1]
	r, device := p.Row(s, slot), s.Slots[slot]
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

// Propagate removes no devices, because the verdict does not depend on the other devices of the set.
func (p *Predicate) Propagate(s *State) Status { return StatusOf(p.Bound(s)) }

// Counts bounds the number of devices in the set that satisfy the predicate.
func (r *Row) Counts(s *State) Counts {
	others := s.Domain.Count() - s.Domain.CountAnd(r.Yes)
	return Counts{
		Fewest: s.Chosen.CountAnd(r.Yes) + max(0, s.Left-others),
		Most:   s.Chosen.CountAnd(r.maybe) + min(s.Left, s.Domain.CountAnd(r.maybe)),
		Fails:  s.Chosen.Meets(r.fails) || s.Left > 0 && s.Domain.Meets(r.fails),
	}
}
