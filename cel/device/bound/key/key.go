// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package key converts CEL values to keys: Go values that are equal if and only if the values are equal in CEL. So keys can be
// used in maps. Ints, strings, bools and lists of these have a key. Compare orders keys as CEL sorts values.
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

// Compare orders keys, for sorting. It orders two ints or two strings as CEL does, and keys of different types by type.
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

// kindOf returns a different number for each type of key.
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

// maxKeys is the maximum length of a list that has a key. Lists in attributes are never longer.
const maxKeys = 64

// In returns the keys of a list's elements. It returns nil unless all elements are ints, strings or bools.
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

// A List is the key of a list of ints, strings and bools. It is a hash, so that long lists have short keys.
type List [sha256.Size]byte

// OfList returns the key of a list with the elements.
func OfList(elements []any) List { return sha256.Sum256(fmt.Appendf(nil, "%#v", elements)) }

// isKey reports whether a value is comparable in Go.
func isKey(value ref.Val) bool {
	switch value.(type) {
	case types.Bool, types.Int, types.String:
		return true
	default:
		return false
	}
}
