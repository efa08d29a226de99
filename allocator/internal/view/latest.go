// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/memo"
)

// MaxReadSets is for how many read sets the views of a node are kept.
const MaxReadSets = 16

// seen is the view of a node for some read set.
type seen struct {
	read ReadSet
	view *View
}

// Latest are the views of a node for the read sets that were needed last, the newest last. The
// list is replaced as a whole. It is safe for concurrent use.
type Latest struct{ slot *memo.Slot[[]seen] }

// NewLatest keeps views in some memory.
func NewLatest(memory *memo.Memory) Latest { return Latest{memo.NewSlot[[]seen](memory)} }

// Get returns the view for a read set, nil if it was not kept.
func (l Latest) Get(read ReadSet) *View {
	if latest := l.slot.Look(); latest != nil {
		for i := range *latest {
			if s := &(*latest)[i]; s.read == read {
				return s.view
			}
		}
	}
	return nil
}

// Keep forgets the oldest if there are too many. What others keep at the same time may be lost.
func (l Latest) Keep(read ReadSet, v *View) {
	var latest []seen
	if before := l.slot.Look(); before != nil {
		latest = *before
	}
	latest = append(slices.Clone(latest[max(0, len(latest)-MaxReadSets+1):]), seen{read, v})
	l.slot.Keep(&latest, sizeOf(latest))
}

func sizeOf(latest []seen) memo.Size {
	size := memo.Size{Bytes: cap(latest) * int(unsafe.Sizeof(seen{}))}
	for _, s := range latest {
		size.Bytes += s.read.Bytes() + int(unsafe.Sizeof(memo.Part{}))
		size.Parts = append(size.Parts, s.view.Part())
	}
	return size
}
