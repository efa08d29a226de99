// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
)

// entry returns the entry of v's leaf for the devices that are currently in v's slots.
func (s *State) entry(v Value) *Entry {
	t := &s.tables.leaves[v.Index]
	if len(v.Slots) == MaxArity {
		return s.pair(t, v.Leaf, s.Slots[v.Slots[0]], s.Slots[v.Slots[1]])
	}
	c := s.Column(v.Leaf)
	switch {
	case c == nil:
		return &openEntry
	case len(v.Slots) == 0:
		return &c.Entries[0]
	default:
		return &c.Entries[s.Slots[v.Slots[0]]]
	}
}

// Column returns the values of a leaf with at most one variable for all devices. It returns nil if the leaf could not be
// evaluated.
func (s *State) Column(l *Leaf) *column {
	t := &s.tables.leaves[l.Index]
	if c := t.column.Load(); c != nil {
		return c
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if c := t.column.Load(); c != nil {
		return c
	}
	c := &column{Entries: make([]Entry, 1)}
	if len(l.Names) > 0 {
		c.Entries = make([]Entry, len(s.tables.devices))
	}
	for i := range c.Entries {
		if !s.evaluate(l, &c.Entries[i], [MaxArity]int{i}) {
			return nil
		}
	}
	c.Ints, c.Groups, c.Misbehaviour = bitset.New(len(c.Entries)), newGroups(c.Entries, wholeValue, len(c.Entries)), newMisbehaviour(c.Entries, len(s.tables.devices))
	if slices.ContainsFunc(c.Entries, func(e Entry) bool { return e.Elements != nil }) {
		// Each element of each device's list may be different, so the number of groups is limited by their memory.
		elements := newGroups(c.Entries, eachValue, maxBytes/SetBytes(len(c.Entries)))
		c.Elements = &elements
	}
	for i := range c.Entries {
		if number := c.Entries[i].Number; !number.Open && !number.IsNever() {
			c.Ints.Add(i)
		}
	}
	t.column.Store(c)
	s.Builds++
	s.tables.grow(c.size())
	return c
}

// pair returns the entry of a leaf with two variables for a pair of devices.
func (s *State) pair(t *leafTable, l *Leaf, first, second int) *Entry {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	n := len(s.tables.devices)
	if t.pairs == nil {
		if n*n > maxBytes/entryBytes {
			s.Exhausted = true
			return &openEntry
		}
		t.pairs = make([]Entry, n*n)
		s.Builds++
		s.addToTables(len(t.pairs) * int(unsafe.Sizeof(Entry{})))
	}
	e := &t.pairs[first*n+second]
	if e.known {
		return e
	}
	if !s.evaluate(l, e, [MaxArity]int{first, second}) {
		return &openEntry
	}
	s.tables.grow(e.textSize())
	return e
}

// evaluate fills an entry by calling CEL. It returns false if CEL could not be called. The caller must not store the entry
// then.
func (s *State) evaluate(l *Leaf, e *Entry, devices [MaxArity]int) bool {
	part := l.Part()
	if part == nil {
		*e = openEntry
		e.aborts = true
		return true
	}
	if s.Err != nil {
		return false
	}
	var variables [MaxArity]device.Variable
	for i, name := range l.Names {
		variables[i] = device.Variable{Name: name, Device: s.tables.devices[devices[i]]}
	}
	s.Evaluations++
	result, err := part.Value(s.ctx, s.budget, variables[:len(l.Names)]...)
	switch {
	case err == nil:
		*e = entryOf(result)
	case isTransient(err):
		s.Err = err
		return false
	default:
		*e = openEntry
		e.aborts = true
	}
	return true
}

// addToTables counts memory for pairs, rows and classes. Once the tables exceed maxBytes, all later bounds are open
// (Exhausted).
func (s *State) addToTables(bytes int) {
	s.Exhausted = s.Exhausted || s.tables.ofPairs.Add(int64(bytes)) > maxBytes
	s.tables.grow(bytes)
}

// isTransient reports whether the error is about the call (context or budget), not the expression, so that a later call may
// succeed.
func isTransient(err error) bool {
	var failure *cel.Error
	return errors.As(err, &failure) && (failure.Reason == cel.ReasonInterrupted || failure.Reason == cel.ReasonBudget)
}

// Entry returns the entry for the devices in the value's slots, and records whether the entry aborts the evaluation.
func (v Value) Entry(s *State) *Entry {
	e := s.entry(v)
	s.aborted = s.aborted || e.aborts
	return e
}

// Bound returns the possible results of a leaf of type bool.
func (v Value) Bound(s *State) outcome.Outcome { return v.Entry(s).Outcome }

// Number returns the bounds of a leaf of type int.
func (v Value) Number(s *State) outcome.Number { return v.Entry(s).Number }
