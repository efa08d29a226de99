// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"
	"unsafe"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celset/celset/cel/device/bound/key"
	"github.com/celset/celset/cel/device/bound/outcome"
)

// entry is what a leaf is for one device or pair of devices.
type entry struct {
	known bool
	// aborts: the evaluation of the whole expression would end here, whatever else
	// stands in it.
	aborts bool
	// outcome of a leaf of type bool, number of one of type int.
	outcome outcome.Outcome
	number  outcome.Number
	// key is equal for equal values, nil if that can't be told or the leaf fails.
	key any
	// elements are the keys of the different values in a list, in order, nil if it is none or one is not known.
	elements *[]any
}

// openEntry may be anything.
var openEntry = entry{known: true, outcome: outcome.Open, number: outcome.OpenNumber}

// entryOf classifies a value. What is neither bool nor int nor an error is open, but may have a key.
func entryOf(value ref.Val) entry {
	switch value := value.(type) {
	case types.Bool:
		return entry{known: true, outcome: outcome.Of(bool(value)), number: outcome.OpenNumber, key: value}
	case types.Int:
		return entry{known: true, outcome: outcome.Open, number: outcome.Exactly(int64(value)), key: value}
	case types.String:
		return entry{known: true, outcome: outcome.Open, number: outcome.OpenNumber, key: value}
	case *types.Err:
		return entry{known: true, outcome: outcome.Error, number: outcome.Never}
	case traits.Lister:
		e := openEntry
		if keys := key.In(value); keys != nil {
			e.key = key.OfList(keys)
			slices.SortFunc(keys, key.Compare)
			keys = slices.Compact(keys)
			e.elements = &keys
		}
		return e
	default:
		return openEntry
	}
}

// smallText is the length of a text up to which it counts as a part of the entry.
const smallText = 16

// textSize is what the texts in the entry take, and the list of its elements.
func (e *entry) textSize() int {
	size := sizeOfText(e.key)
	if e.elements != nil {
		for _, element := range *e.elements {
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

// misbehaves reports whether the entry is what a guard is against.
func (e *entry) misbehaves(how against) bool {
	switch how {
	case aborting:
		return e.aborts
	case failing:
		return e.aborts || e.outcome == outcome.Error
	case far:
		return e.aborts || e.number.Open || e.number.IsNever() || e.number.Fails || outcome.IsFar(e.number)
	default:
		return e.aborts || e.outcome != outcome.True && e.outcome != outcome.False
	}
}
