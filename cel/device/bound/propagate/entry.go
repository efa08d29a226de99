// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"
	"unsafe"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celset/celset/cel/device/bound/key"
	"github.com/celset/celset/cel/device/bound/outcome"
)

// An Entry has the value of a leaf for one device or pair of devices.
type Entry struct {
	known bool
	// aborts: the evaluation of the whole expression would end here, whatever else
	// stands in it.
	aborts bool
	// Outcome of a leaf of type bool, number of one of type int.
	Outcome outcome.Outcome
	Number  outcome.Number
	// Key is equal for equal values, nil if that can't be told or the leaf fails.
	Key any
	// Elements are the keys of the different values in a list, in order, nil if it is none or one is not known.
	Elements *[]any
}

// openEntry may be anything.
var openEntry = Entry{known: true, Outcome: outcome.Open, Number: outcome.OpenNumber}

// entryOf classifies a value. What is neither bool nor int nor an error is open, but may have a key.
func entryOf(value ref.Val) Entry {
	switch value := value.(type) {
	case types.Bool:
		return Entry{known: true, Outcome: outcome.Of(bool(value)), Number: outcome.OpenNumber, Key: value}
	case types.Int:
		return Entry{known: true, Outcome: outcome.Open, Number: outcome.Exactly(int64(value)), Key: value}
	case types.String:
		return Entry{known: true, Outcome: outcome.Open, Number: outcome.OpenNumber, Key: value}
	case *types.Err:
		return Entry{known: true, Outcome: outcome.Error, Number: outcome.Never}
	case traits.Lister:
		e := openEntry
		if keys := key.In(value); keys != nil {
			e.Key = key.OfList(keys)
			slices.SortFunc(keys, key.Compare)
			keys = slices.Compact(keys)
			e.Elements = &keys
		}
		return e
	default:
		return openEntry
	}
}

// smallText is the length of a text up to which it counts as a part of the entry.
const smallText = 16

// textSize is the memory of the texts in the entry, and of the list of its elements.
func (e *Entry) textSize() int {
	size := sizeOfText(e.Key)
	if e.Elements != nil {
		for _, element := range *e.Elements {
			size += int(unsafe.Sizeof(element)) + smallText + sizeOfText(element)
		}
	}
	return size
}

func sizeOfText(of any) int {
	switch text := of.(type) {
	case types.String:
		if len(text) > smallText {
			return len(text) + smallText
		}
	case key.List:
		return len(text)
	}
	return 0
}

// misbehaves reports whether the entry does what a guard forbids.
func (e *Entry) misbehaves(how Against) bool {
	switch how {
	case Aborting:
		return e.aborts
	case Failing:
		return e.aborts || e.Outcome == outcome.Error
	case Far:
		return e.aborts || e.Number.Open || e.Number.IsNever() || e.Number.Fails || outcome.IsFar(e.Number)
	default:
		return e.aborts || e.Outcome != outcome.True && e.Outcome != outcome.False
	}
}
