// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict remembers what an expression says of sets of devices.
//
// There may be a verdict for each set that a search completes. An evaluation takes some
// microseconds, so to remember it must take much less: the verdicts of one expression on the
// devices of one hardware type are in one table, in which most sets are a number, and memory is
// counted for many of them at once.
package verdict

import (
	"context"
	"encoding/binary"
	"math/bits"
)

// Verdict is what an expression says of a set.
type Verdict struct {
	Satisfied bool
	// Cost is that of the evaluation.
	Cost uint64
}

// Table has the verdicts of one expression on sets of devices, given by their positions. It is
// safe for concurrent use.
type Table struct {
	// bits is what a position takes.
	bits int
	// small has sets that are a number, large the others.
	small sets[uint64]
	large sets[string]
}

// NewTable returns an empty table for sets of so many devices, which takes no more than about the
// given number of bytes. grown is told each time that it takes some more.
func NewTable(devices int, limit int64, grown func(bytes int)) *Table {
	return &Table{
		bits:  max(1, bits.Len(uint(max(devices, 1)-1))),
		small: sets[uint64]{store: &numbers{limit: limit / 2, grown: grown}},
		large: sets[string]{store: &texts{limit: limit / 2, grown: grown}},
	}
}

// Find returns the verdict on a set, and whether it was known. If it is not, evaluate is called,
// unless somebody else is evaluating that set: then that is waited for. Nothing is kept of an
// evaluation that fails. The order of the positions counts.
func (t *Table) Find(ctx context.Context, positions []int, evaluate func() (Verdict, error)) (v Verdict, known bool, err error) {
	if len(positions)*t.bits < 64 {
		return t.small.find(ctx, t.number(positions), evaluate)
	}
	return t.large.find(ctx, text(positions), evaluate)
}

// number begins with a 1, so that sets of different sizes are different numbers, and none is 0.
func (t *Table) number(positions []int) uint64 {
	number := uint64(1)
	for _, position := range positions {
		number = number<<t.bits | uint64(position)
	}
	return number
}

func text(positions []int) string {
	memory := make([]byte, 0, 4*len(positions))
	for _, position := range positions {
		memory = binary.BigEndian.AppendUint32(memory, uint32(position))
	}
	return string(memory)
}
