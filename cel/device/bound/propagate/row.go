// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// A Row holds the verdicts of a predicate for all devices of one variable. The other variable, if any, has a fixed device.
type Row struct {
	// The predicate is true for the devices in Yes and false for the devices in no. It may be true for maybe, may be false for
	// maybeNot, and may fail for fails.
	Yes, no, maybe, maybeNot, fails bitset.Set
	// Exact means that the predicate is either true or false for each device.
	Exact bool
	// aborts means that, for some device, CEL ends the evaluation of the whole expression here.
	aborts bool
	// opposite holds the verdicts of the negation.
	opposite *Row
}

type rows []atomic.Pointer[Row]

// At returns the row for a device, or nil if the caller must call RowAt. It must stay short enough to be inlined, because loops
// call it for each device.
func (m rows) At(outer int) *Row {
	if r := m[outer].Load(); r != nil && !r.aborts {
		return r
	}
	return nil
}

// A predicateTable holds the rows computed so far, and the rows of the negation. rows[0] is over the first variable, indexed by
// the device of the second; rows[1] is the other way round.
type predicateTable struct {
	*Tabulated
	rows, opposites [MaxArity]rows

	// mutex guards the fields below, and filling rows.
	mutex sync.Mutex
	// classes are the classes of the devices for each variable. They are valid if classified is set.
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

// size returns the memory of the table without rows, in bytes.
func (t *predicateTable) size() int {
	bytes := int(unsafe.Sizeof(*t))
	for i := range t.rows {
		bytes += (len(t.rows[i]) + len(t.opposites[i])) * int(unsafe.Sizeof(atomic.Pointer[Row]{}))
	}
	return bytes
}

// Tabulated lists the leaves that a predicate reads.
type Tabulated struct {
	// Slots are the slots of the predicate's variables.
	Slots []int
	// columns are the leaves that the predicate reads for each variable.
	columns [MaxArity][]*Leaf
	// Pairwise means that the predicate compares the devices themselves or reads a leaf of both.
	Pairwise bool
}

// IsExact reports whether the predicate is either true or false for each of the devices.
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
	// of maps a device to its class. first has one device of each class, members all devices of each class.
	of      []int32
	first   []int
	members []bitset.Set
}

// Counts is a range for the number of devices in a list.
type Counts struct {
	// Fewest and Most are the limits of the number.
	Fewest, Most int
	// Fails means that the list may fail.
	Fails bool
}
