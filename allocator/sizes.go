// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"unsafe"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cel/memo"

	"github.com/celset/celset/allocator/internal/fingerprint"
)

// What is in a [Cache] takes about as many bytes as is said here, without the keys and values
// themselves, which are counted by package memo. A test compares it with the heap.

// What a device takes once an expression has looked at it: so much by itself, and for each
// attribute and capacity a place in maps by domain and name and a converted value.
const (
	deviceBytes    = 700
	attributeBytes = 130
	elementBytes   = 24
)

func sizeOfDevice(d *resourceapi.Device) int {
	bytes := deviceBytes + attributeBytes*(len(d.Attributes)+len(d.Capacity))
	for _, a := range d.Attributes {
		bytes += elementBytes * (len(a.IntValues) + len(a.BoolValues) + len(a.StringValues) + len(a.VersionValues))
	}
	return bytes
}

func (h *deviceView) part() memo.Part { return memo.Part{Of: h, Bytes: h.bytes} }

func sizeOfContent(key contentKey, _ *fingerprint.Sum) memo.Size {
	return memo.Size{Bytes: len(key.names)}
}

func sizeOfView(key viewKey, h **deviceView) memo.Size {
	return memo.Size{Bytes: len(key.names), Parts: []memo.Part{(*h).part()}}
}

func sizeOfSeenViews(seen []seenView) memo.Size {
	size := memo.Size{Bytes: cap(seen) * int(unsafe.Sizeof(seenView{}))}
	for _, s := range seen {
		size.Bytes += len(s.names) + int(unsafe.Sizeof(memo.Part{}))
		size.Parts = append(size.Parts, s.part())
	}
	return size
}

func sizeOfSelections(_ selectionKey, row **selectionRow) memo.Size {
	return memo.Size{Bytes: int(unsafe.Sizeof(selectionRow{})) + 16*len((*row).known)}
}

func sizeOfTables(_ tablesKey, t *tabulated) memo.Size {
	if t.Tables == nil {
		return memo.Size{}
	}
	return memo.Size{Bytes: t.Size(), Parts: []memo.Part{
		t.view.part(), t.program, {Of: t.Analysis, Bytes: t.Analysis.Size()},
	}}
}

func sizeOfAnalysis(_ analysisKey, a *analyzed) memo.Size {
	return memo.Size{Bytes: a.Size(), Parts: []memo.Part{a.program}}
}

func sizeOfExpressionReadSet(_ expressionKey, f *readSet) memo.Size {
	return memo.Size{Bytes: len(f.names)}
}

func sizeOfSelectorReadSet(text string, f *readSet) memo.Size {
	return memo.Size{Bytes: len(text) + len(f.names)}
}

func sizeOfVerdict(key verdictKey, _ *setVerdict) memo.Size {
	return memo.Size{Bytes: len(key.devices)}
}

func sizeOfAnswer(key answerKey, a *keptAnswer) memo.Size {
	bytes := len(key.inUse) + len(a.reason) + int(unsafe.Sizeof(int(0)))*cap(a.decisions) + int(unsafe.Sizeof(placeOfChoice{}))*cap(a.choices)
	if a.refusal != nil {
		bytes += len(a.refusal.Error()) + refusalBytes
	}
	return memo.Size{Bytes: bytes}
}

// refusalBytes is what an error takes besides its text.
const refusalBytes = 64

func sizeOfSymmetry(key symmetryKey, kinds *[]int) memo.Size {
	return memo.Size{Bytes: len(key.read.names) + int(unsafe.Sizeof(int(0)))*cap(*kinds)}
}
