// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
)

// entry returns the entry for the devices in the slots.
func (s *state) entry(v value) *entry {
	t := &s.tables.leaves[v.index]
	if len(v.slots) == maxArity {
		return s.pair(t, v.leaf, s.slots[v.slots[0]], s.slots[v.slots[1]])
	}
	c := s.column(v.leaf)
	switch {
	case c == nil:
		return &openEntry
	case len(v.slots) == 0:
		return &c.entries[0]
	default:
		return &c.entries[s.slots[v.slots[0]]]
	}
}

// column returns a leaf of one variable or none for all devices. nil if it could not
// be evaluated.
func (s *state) column(l *leaf) *column {
	t := &s.tables.leaves[l.index]
	if c := t.column.Load(); c != nil {
		return c
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if c := t.column.Load(); c != nil {
		return c
	}
	c := &column{entries: make([]entry, 1)}
	if len(l.names) > 0 {
		c.entries = make([]entry, len(s.tables.devices))
	}
	for i := range c.entries {
		if !s.evaluate(l, &c.entries[i], [maxArity]int{i}) {
			return nil
		}
	}
	c.ints, c.groups, c.misbehaviour = bitset.New(len(c.entries)), newGroups(c.entries, wholeValue, len(c.entries)), newMisbehaviour(c.entries, len(s.tables.devices))
	if slices.ContainsFunc(c.entries, func(e entry) bool { return e.elements != nil }) {
		// Each device may have as many values of its own as fit into a list.
		elements := newGroups(c.entries, eachValue, maxBytes/setSize(len(c.entries)))
		c.elements = &elements
	}
	for i := range c.entries {
		if number := c.entries[i].number; !number.Open && !number.IsNever() {
			c.ints.Add(i)
		}
	}
	t.column.Store(c)
	s.builds++
	s.tables.grow(c.size())
	return c
}

// pair returns a leaf of two variables for two devices.
func (s *state) pair(t *leafTable, l *leaf, first, second int) *entry {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	n := len(s.tables.devices)
	if t.pairs == nil {
		if n*n > maxBytes/entryBytes {
			s.exhausted = true
			return &openEntry
		}
		t.pairs = make([]entry, n*n)
		s.builds++
		s.addToTables(len(t.pairs) * int(unsafe.Sizeof(entry{})))
	}
	e := &t.pairs[first*n+second]
	if e.known {
		return e
	}
	if !s.evaluate(l, e, [maxArity]int{first, second}) {
		return &openEntry
	}
	s.tables.grow(e.textSize())
	return e
}

// evaluate asks CEL. It is false if CEL could not be asked: nothing may be
// remembered then.
func (s *state) evaluate(l *leaf, e *entry, devices [maxArity]int) bool {
	part := l.part()
	if part == nil {
		*e = openEntry
		e.aborts = true
		return true
	}
	if s.err != nil {
		return false
	}
	var variables [maxArity]device.Variable
	for i, name := range l.names {
		variables[i] = device.Variable{Name: name, Device: s.tables.devices[devices[i]]}
	}
	s.evaluations++
	result, err := part.Value(s.ctx, s.budget, variables[:len(l.names)]...)
	switch {
	case err == nil:
		*e = entryOf(result)
	case isTransient(err):
		s.err = err
		return false
	default:
		*e = openEntry
		e.aborts = true
	}
	return true
}

// addToTables counts what is made for pairs. If it is too much nothing is looked at any more.
func (s *state) addToTables(bytes int) {
	s.exhausted = s.exhausted || s.tables.ofPairs.Add(int64(bytes)) > maxBytes
	s.tables.grow(bytes)
}

// isTransient reports whether CEL may be asked again later.
func isTransient(err error) bool {
	var failure *cel.Error
	return errors.As(err, &failure) && (failure.Reason == cel.ReasonInterrupted || failure.Reason == cel.ReasonBudget)
}
