// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"cmp"
	"crypto/sha256"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

func isOrdered(value any) bool {
	switch value.(type) {
	case types.Int, types.String:
		return true
	default:
		return false
	}
}

// compareValues orders keys. It compares two ints or two strings as CEL sorts them.
func compareValues(a, b any) int {
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

// keysIn are the values in a list, nil if they are not all ints, strings or bools.
func keysIn(list traits.Lister) []any {
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

// listKey is equal for equal lists of ints, strings and bools, and no longer than that for long ones.
type listKey [sha256.Size]byte

func listKeyOf(elements []any) listKey { return sha256.Sum256(fmt.Appendf(nil, "%#v", elements)) }

// isKey reports whether equal values are equal in Go, too.
func isKey(value ref.Val) bool {
	switch value.(type) {
	case types.Bool, types.Int, types.String:
		return true
	default:
		return false
	}
}
