// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celset/celset/cel/device"
)

// maxArity is how many devices a part of an expression may speak of to be
// tabulated.
const maxArity = 2

// leaf is a part of an expression that does not speak of the set, only of the
// devices that some variables stand for. It is evaluated by CEL and remembered.
type leaf struct {
	part *device.Part
	// names and slots are the variables, by their name in the expression and by the
	// slot of the partial set that has the device.
	names []string
	slots []int
	// index is the leaf's place in Analysis.leaves.
	index int
}

// entry is what a leaf is for one device or pair of devices.
type entry struct {
	known bool
	// outcome of a leaf of type bool, number of one of type int.
	outcome Outcome
	number  number
	// key is equal for equal values, nil if that can't be told or the leaf fails.
	key any
}

// entryOf classifies a value. What is neither bool nor int nor an error is open.
func entryOf(value ref.Val) entry {
	switch value := value.(type) {
	case types.Bool:
		return entry{known: true, outcome: outcomeOf(bool(value)), number: openNumber, key: value}
	case types.Int:
		return entry{known: true, outcome: Open, number: exactly(int64(value)), key: value}
	case types.String:
		return entry{known: true, outcome: Open, number: openNumber, key: value}
	case *types.Err:
		return entry{known: true, outcome: Error, number: never}
	default:
		return entry{known: true, outcome: Open, number: openNumber}
	}
}

// table has the entries of a leaf, as far as they were asked for.
type table struct {
	leaf    *leaf
	devices []*device.Device
	entries []entry
	rows    map[rowKey]*row
	tables  *Tables
}

func (t *Tables) newTable(l *leaf, devices []*device.Device) *table {
	size := 1
	for range l.slots {
		size *= len(devices)
	}
	return &table{leaf: l, devices: devices, entries: make([]entry, size), rows: make(map[rowKey]*row), tables: t}
}

// at returns the entry for the devices in the slots.
func (t *table) at(s *state) *entry {
	index := 0
	for _, slot := range t.leaf.slots {
		index = index*len(t.devices) + s.slots[slot]
	}
	e := &t.entries[index]
	if !e.known {
		*e = t.evaluate(s)
	}
	return e
}

func (t *table) evaluate(s *state) entry {
	variables := make([]device.Variable, len(t.leaf.slots))
	for i, slot := range t.leaf.slots {
		variables[i] = device.Variable{Name: t.leaf.names[i], Device: t.devices[s.slots[slot]]}
	}
	t.tables.evaluations++
	value := t.leaf.part.Value(t.tables.ctx, variables...)
	if err, failed := value.(*types.Err); failed && (isInternal(err) || t.tables.ctx.Err() != nil) {
		t.tables.unabsorbed = true
	}
	return entryOf(value)
}

// newLeaf plans a part of the expression. nil if that is not possible.
func (a *analyzer) newLeaf(expr ast.Expr, free []variable) *leaf {
	if len(free) > maxArity {
		return nil
	}
	part, err := a.expression.Part(expr)
	if err != nil {
		return nil
	}
	l := &leaf{part: part, index: len(a.leaves)}
	for _, v := range free {
		l.names = append(l.names, v.name)
		l.slots = append(l.slots, v.slot)
	}
	a.leaves = append(a.leaves, l)
	return l
}

func (l *leaf) bound(s *state) Outcome { return s.tables.tables[l.index].at(s).outcome }
func (l *leaf) number(s *state) number { return s.tables.tables[l.index].at(s).number }
func (l *leaf) key(s *state) any       { return s.tables.tables[l.index].at(s).key }
