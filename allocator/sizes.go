// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"unsafe"
	"weak"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/room"
	"github.com/celset/celset/allocator/internal/selection"
	"github.com/celset/celset/allocator/internal/verdict"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/memo"
)

// What is in a [Cache] takes about as many bytes as is said here, without the keys and values
// themselves, which are counted by package memo. A test compares it with the heap.

func sizeOfContent(key contentKey, _ *fingerprint.Sum) memo.Size {
	return memo.Size{Bytes: key.read.Bytes()}
}

func sizeOfView(key viewKey, v **view.View) memo.Size {
	return memo.Size{Bytes: key.read.Bytes(), Parts: []memo.Part{(*v).Part()}}
}

func sizeOfSelections(_ selectionKey, row **selection.Row) memo.Size {
	return memo.Size{Bytes: (*row).Bytes()}
}

func sizeOfTables(_ tablesKey, t *tabulated) memo.Size {
	if t.Tables == nil {
		return memo.Size{}
	}
	return memo.Size{Bytes: t.Size(), Parts: []memo.Part{
		t.view.Part(), t.program, {Of: t.Analysis, Bytes: t.Analysis.Size()},
	}}
}

func sizeOfAnalysis(_ analysisKey, a *analyzed) memo.Size {
	return memo.Size{Bytes: a.Size(), Parts: []memo.Part{a.program}}
}

func sizeOfExpressionReadSet(_ expressionKey, r *view.ReadSet) memo.Size {
	return memo.Size{Bytes: r.Bytes()}
}

func sizeOfSelectorReadSet(text string, r *view.ReadSet) memo.Size {
	return memo.Size{Bytes: len(text) + r.Bytes()}
}

// sizeOfVerdicts is that of a table without entries.
func sizeOfVerdicts(_ verdictsKey, _ **verdict.Table) memo.Size {
	return memo.Size{Bytes: int(unsafe.Sizeof(verdict.Table{}))}
}

func sizeOfAnswer(key answerKey, a *keptAnswer) memo.Size {
	bytes := len(key.inUse) + len(a.reason) + int(unsafe.Sizeof(int(0)))*cap(a.decisions) + int(unsafe.Sizeof(placeOfChoice{}))*cap(a.choices)
	if a.refusal != nil {
		bytes += len(a.refusal.Error()) + refusalBytes
	}
	for _, v := range a.values {
		bytes += int(unsafe.Sizeof(v)) + int(unsafe.Sizeof(ShapeLoss{}))*cap(v.Losses)
	}
	if e := a.failure; e != nil {
		bytes += int(unsafe.Sizeof(*e)) + len(e.Constraint) + len(e.Message) + int(unsafe.Sizeof(int(0)))*cap(e.positions)
	}
	return memo.Size{Bytes: bytes}
}

// refusalBytes is what an error takes besides its text.
const refusalBytes = 64

func sizeOfRoom(_ roomKey, sets **room.Sets) memo.Size {
	if *sets == nil {
		return memo.Size{}
	}
	return memo.Size{Bytes: (*sets).Bytes()}
}

func sizeOfConflicts(of weak.Pointer[inventory.Inventory], _ *bitset.List) memo.Size {
	devices := 0
	if on := of.Value(); on != nil {
		devices = len(on.Candidates)
	}
	return memo.Size{Bytes: devices * bitset.Words(devices) * int(unsafe.Sizeof(uint64(0)))}
}

func sizeOfSymmetry(key symmetryKey, kinds *[]int) memo.Size {
	return memo.Size{Bytes: key.read.Bytes() + int(unsafe.Sizeof(int(0)))*cap(*kinds)}
}
