// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package key makes Go values of CEL values that are equal in Go if they are equal in CEL, so that they can be keys of maps.
//
// Ints, strings and bools have a key, and lists of them. Keys are put in the order in which CEL sorts them.
package key

import (
	"cmp"
	"crypto/sha256"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// IsOrdered reports whether CEL sorts values of the type.
func IsOrdered(value any) bool {
	switch value.(type) {
	case types.Int, types.String:
		return true
	default:
		return false
	}
}

// Compare orders keys. It compares two ints or two strings as CEL sorts them.
func Compare(a, b any) int {
	switch a := a.(type) {
	case types.Int:
		if b, ok := b.(types.Int); ok {
			return cmp.Compare(a, b)
		}
	case types.String:
		if b, ok := b.(types.String); ok {
			return cmp.Compare(a, b)
		}
	case types.Bool:
		if b, ok := b.(types.Bool); ok {
			return int(a.Compare(b).(types.Int))
		}
	}
	return cmp.Compare(kindOf(a), kindOf(b))
}

// kindOf is another number for each type of a key.
func kindOf(key any) int {
	switch key.(type) {
	case types.Bool:
		return 0
	case types.Int:
		return 1
	default:
		return 2
	}
}

// maxKeys is how long a list may be of which the values are known: as long as an attribute may be.
const maxKeys = 64

// In are the values in a list, nil if they are not all ints, strings or bools.
func In(list traits.Lister) []any {
	size, ok := list.Size().(types.Int)
	if !ok || size > maxKeys {
		return nil
	}
	keys := make([]any, 0, size)
	for it := list.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		if !isKey(element) {
			return nil
		}
		keys = append(keys, element)
	}
	return keys
}

// List is equal for equal lists of ints, strings and bools, and no longer than that for long ones.
type List [sha256.Size]byte

// OfList is the key of a list with these elements.
func OfList(elements []any) List { return sha256.Sum256(fmt.Appendf(nil, "%#v", elements)) }

// isKey reports whether equal values are equal in Go, too.
func isKey(value ref.Val) bool {
	switch value.(type) {
	case types.Bool, types.Int, types.String:
		return true
	default:
		return false
	}
}
