// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
)

// Tables are what an expression says of the given devices, one by one and in pairs.
// They are filled as they are needed, each entry once, and never change after that:
// any number of searches may use them at the same time, each through its own
// [Bounds].
type Tables struct {
	*Analysis
	// Grown, if there is such, is told when the tables take more bytes of memory than before.
	// It must be set before the tables are used.
	Grown   func(bytes int)
	devices []*device.Device
	leaves  []leafTable
	// predicates are by predicate.index.
	predicates []predicateTable
	// boxes are by box.index: the places for them.
	boxes []atomic.Pointer[[]place]
	// weights are by sum.index.
	weights []atomic.Pointer[weights]
	// ofPairs is what they take for what is said of pairs.
	ofPairs atomic.Int64
}

// Tabulate prepares the tables for the given devices. CEL is asked later.
func (a *Analysis) Tabulate(devices []*device.Device) *Tables {
	t := &Tables{
		Analysis:   a,
		devices:    devices,
		leaves:     make([]leafTable, len(a.leaves)),
		predicates: make([]predicateTable, len(a.predicates)),
		boxes:      make([]atomic.Pointer[[]place], a.boxes),
		weights:    make([]atomic.Pointer[weights], a.sums),
	}
	for i := range a.predicates {
		t.predicates[i].init(&a.predicates[i], len(devices))
	}
	return t
}

// Size is about how many bytes of memory the tables take before they are filled, without the
// analysis and the devices. What they take later is said to Grown.
func (t *Tables) Size() int {
	bytes := int(unsafe.Sizeof(*t)) + len(t.leaves)*int(unsafe.Sizeof(leafTable{})) + len(t.boxes)*int(unsafe.Sizeof(t.boxes[0])) + len(t.weights)*pointerBytes
	for i := range t.predicates {
		bytes += t.predicates[i].size()
	}
	return bytes
}

// addToTables counts what is made for pairs. If it is too much nothing is looked at any more.
func (s *state) addToTables(bytes int) {
	s.exhausted = s.exhausted || s.tables.ofPairs.Add(int64(bytes)) > maxBytes
	s.tables.grow(bytes)
}

func (t *Tables) grow(bytes int) {
	if t.Grown != nil && bytes > 0 {
		t.Grown(bytes)
	}
}

// leafTable has what CEL says: all entries of a leaf of one variable or none, which
// are published together, or those of a leaf of two as far as they were asked for.
type leafTable struct {
	mutex  sync.Mutex
	column atomic.Pointer[column]
	pairs  []entry
}

// column has a leaf of one variable for all devices.
type column struct {
	entries []entry
	// ints are the devices for which it is a number.
	ints bitset.Set
	// groups has the devices by value. elements by each value of a list, if the leaf is one for some device.
	groups       groups
	elements     *groups
	misbehaviour misbehaviour
}

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
		if number := c.entries[i].number; !number.open && !number.isNever() {
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

// size is what the column takes.
func (c *column) size() int {
	sets := 1 + len(c.groups.members) + 1 + len(c.misbehaviour)
	if c.elements != nil {
		sets += len(c.elements.members) + 1
	}
	bytes := int(unsafe.Sizeof(*c)) + len(c.entries)*int(unsafe.Sizeof(entry{})) + sets*setSize(len(c.entries))
	for i := range c.entries {
		bytes += c.entries[i].textSize()
	}
	return bytes
}

// setSize is what a set of devices takes in a list of sets.
func setSize(devices int) int { return int(unsafe.Sizeof(bitset.Set{})) + 8*bitset.Words(devices) }

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
