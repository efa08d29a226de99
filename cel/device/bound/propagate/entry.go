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

// An Entry holds the value of a leaf for one device or one pair.
type Entry struct {
	known bool
	// aborts means that CEL stops evaluating the whole expression at this value. No operator absorbs such an error.
	aborts bool
	// Outcome has the possible values if the leaf is a bool, and Number if the leaf is an int.
	Outcome outcome.Outcome
	Number  outcome.Number
	// Key is a comparable form of the value: equal values have equal keys. It is nil if the value can't be compared or the leaf
	// fails.
	Key any
	// Elements has the sorted keys of the list's elements, without duplicates. It is nil if the value is not a list or an
	// element has no key.
	Elements *[]any
}

// openEntry is the entry of a leaf that may have any value.
var openEntry = Entry{known: true, Outcome: outcome.Open, Number: outcome.OpenNumber}

// entryOf converts a value to an entry. A value that is neither bool nor int is open, but may have a key.
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

// smallText is the maximum length of a text whose memory is not counted separately.
const smallText = 16

// textSize returns the memory in bytes of the entry's texts and of the list of its elements.
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

// misbehaves reports whether the entry shows the given kind of misbehaviour.
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
