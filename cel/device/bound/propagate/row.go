// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// A Row holds the verdicts of a predicate for all devices as one variable. The other variable, if any, has a fixed device.
type Row struct {
	// Each set has devices: the predicate is true for Yes and false for no. For maybe it may be true, for maybeNot it may be
	// false, and for fails it may be an error.
	Yes, no, maybe, maybeNot, fails bitset.Set
	// Exact means that the predicate is true or false, without error, for each device.
	Exact bool
	// aborts means that the predicate aborts the evaluation of the whole expression for some device.
	aborts bool
	// opposite holds the verdicts of the negation.
	opposite *Row
}

type rows []atomic.Pointer[Row]

// At returns the row for the other variable's device, or nil if the row is missing or aborts. Then the caller must call RowAt.
// At must stay short enough to be inlined, because loops call it for each device.
func (m rows) At(outer int) *Row {
	if r := m[outer].Load(); r != nil && !r.aborts {
		return r
	}
	return nil
}

// A predicateTable holds the computed rows of a predicate and of its negation (opposites). rows[0] holds rows over the first
// variable, indexed by the device of the second variable. rows[1] holds rows over the second variable, indexed by the first.
type predicateTable struct {
	*Tabulated
	rows, opposites [MaxArity]rows

	// mutex guards the fields below. It is also held while a row is computed.
	mutex sync.Mutex
	// classes[i] groups the devices of variable i. It is valid if classified[i] is set, and may be nil.
	classes    [MaxArity]*classes
	classified [MaxArity]bool
}

func (t *predicateTable) init(of *Tabulated, devices int) {
	t.Tabulated = of
	if len(of.Slots) == 1 {
		devices = 1
	}
	for i := range of.Slots {
		t.rows[i], t.opposites[i] = make(rows, devices), make(rows, devices)
	}
}

// size returns the memory in bytes of the table before rows are added.
func (t *predicateTable) size() int {
	bytes := int(unsafe.Sizeof(*t))
	for i := range t.rows {
		bytes += (len(t.rows[i]) + len(t.opposites[i])) * int(unsafe.Sizeof(atomic.Pointer[Row]{}))
	}
	return bytes
}

// Tabulated describes a predicate with a table: its variables and the leaves that it reads.
type Tabulated struct {
	// Slots are the slots of the predicate's variables.
	Slots []int
	// columns[i] has the leaves that the predicate reads for variable i alone.
	columns [MaxArity][]*Leaf
	// Pairwise means that the predicate compares the two devices themselves or reads a leaf with both variables.
	Pairwise bool
}

// IsExact reports whether the predicate is true or false, without error, for each of the devices.
func (r *Row) IsExact(devices bitset.Set) bool {
	if r.Exact {
		return true
	}
	for i := range devices.All() {
		if !r.Yes.Has(i) && !r.no.Has(i) {
			return false
		}
	}
	return true
}

// classes groups devices that have the same values in some columns.
type classes struct {
	// of maps each device to its class. first[c] is one device of class c, and members[c] has all devices of class c.
	of      []int32
	first   []int
	members []bitset.Set
}

// Counts bounds the number of devices in a list.
type Counts struct {
	// Fewest and Most are the smallest and the greatest possible number.
	Fewest, Most int
	// Fails means that evaluating the list may fail.
	Fails bool
}
