// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// Row has the verdicts for all devices that one of the variables may stand for, the
// other, if any, standing for a certain device.
type Row struct {
	// Yes are the devices for which the predicate is surely true, no those for which it
	// is surely false. It may be true for maybe, false for maybeNot and fail for fails.
	Yes, no, maybe, maybeNot, fails bitset.Set
	// Exact: it is either true or false for each.
	Exact bool
	// aborts: evaluating it would end the evaluation of the whole expression for some
	// device.
	aborts bool
	// opposite has the verdicts for the negation.
	opposite *Row
}

type rows []atomic.Pointer[Row]

// At is the row for a device, nil if that takes more than looking it up. Keep it short enough
// to be inlined: loops over all devices call it for each of them.
func (m rows) At(outer int) *Row {
	if r := m[outer].Load(); r != nil && !r.aborts {
		return r
	}
	return nil
}

// predicateTable has the rows that were asked for, and those for the negation: over the
// first variable by the device that the second stands for, and the other way round.
type predicateTable struct {
	*Tabulated
	rows, opposites [MaxArity]rows

	// mutex guards what follows, and filling rows.
	mutex sync.Mutex
	// classes are of the devices that each of the variables may stand for, once they are classified.
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

// size is the memory of the table without rows.
func (t *predicateTable) size() int {
	bytes := int(unsafe.Sizeof(*t))
	for i := range t.rows {
		bytes += (len(t.rows[i]) + len(t.opposites[i])) * int(unsafe.Sizeof(atomic.Pointer[Row]{}))
	}
	return bytes
}

// Tabulated lists the leaves that a predicate reads.
type Tabulated struct {
	// Slots are those of its variables.
	Slots []int
	// columns are the leaves that it reads of the device of each variable.
	columns [MaxArity][]*Leaf
	// Pairwise: it asks whether the devices are the same, or has a leaf of both.
	Pairwise bool
}

// IsExact reports whether the verdict is known for each of the devices.
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

// classes are the devices for which columns are the same, a class for each value that they have.
type classes struct {
	// of is the class of each device. first has a device of each class, members has all of them.
	of      []int32
	first   []int
	members []bitset.Set
}

// Counts is how many devices of a list.
type Counts struct {
	// Fewest and most of them that the list may have.
	Fewest, Most int
	// Fails: the list may fail.
	Fails bool
}
