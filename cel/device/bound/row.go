// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// row has the verdicts for all devices that one of the variables may stand for, the
// other, if any, standing for a certain device.
type row struct {
	// yes are the devices for which the predicate is surely true, no those for which it
	// is surely false. It may be true for maybe, false for maybeNot and fail for fails.
	yes, no, maybe, maybeNot, fails bitset.Set
	// exact: it is either true or false for each.
	exact bool
	// aborts: evaluating it would end the evaluation of the whole expression for some
	// device.
	aborts bool
	// opposite has the verdicts for the negation.
	opposite *row
}

type rows []atomic.Pointer[row]

// at is the row for a device, nil if that takes more than looking it up. Keep it short enough
// to be inlined: loops over all devices call it for each of them.
func (m rows) at(outer int) *row {
	if r := m[outer].Load(); r != nil && !r.aborts {
		return r
	}
	return nil
}

// predicateTable has the rows that were asked for, and those for the negation: over the
// first variable by the device that the second stands for, and the other way round.
type predicateTable struct {
	*tabulated
	rows, opposites [maxArity]rows

	// mutex guards what follows, and filling rows.
	mutex sync.Mutex
	// classes are of the devices that each of the variables may stand for, once they are classified.
	classes    [maxArity]*classes
	classified [maxArity]bool
}

func (t *predicateTable) init(of *tabulated, devices int) {
	t.tabulated = of
	if len(of.slots) == 1 {
		devices = 1
	}
	for i := range of.slots {
		t.rows[i], t.opposites[i] = make(rows, devices), make(rows, devices)
	}
}

// size is what the table takes without rows.
func (t *predicateTable) size() int {
	bytes := int(unsafe.Sizeof(*t))
	for i := range t.rows {
		bytes += (len(t.rows[i]) + len(t.opposites[i])) * int(unsafe.Sizeof(atomic.Pointer[row]{}))
	}
	return bytes
}

// tabulated is what a predicate reads.
type tabulated struct {
	// slots are those of its variables.
	slots []int
	// columns are the leaves that it reads of the device of each variable.
	columns [maxArity][]*leaf
	// pairwise: it asks whether the devices are the same, or has a leaf of both.
	pairwise bool
}

// IsExact reports whether the verdict is known for each of the devices.
func (r *row) isExact(devices bitset.Set) bool {
	if r.exact {
		return true
	}
	for i := range devices.All() {
		if !r.yes.Has(i) && !r.no.Has(i) {
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

// counts is how many devices of a list.
type counts struct {
	// fewest and most of them that the list may have.
	fewest, most int
	// fails: the list may fail.
	fails bool
}
