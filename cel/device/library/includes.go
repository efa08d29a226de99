// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// sameOrIncludes reports whether two values, or lists of values, have a common element.
func sameOrIncludes(one, other ref.Val) ref.Val {
	for _, a := range valuesOf(one) {
		for _, b := range valuesOf(other) {
			if types.Equal(a, b) == types.True {
				return types.True
			}
		}
	}
	return types.False
}

// valuesOf returns the elements of a list. For any other value it returns the value alone.
func valuesOf(value ref.Val) []ref.Val {
	list, ok := value.(traits.Lister)
	if !ok {
		return []ref.Val{value}
	}
	var result []ref.Val
	for it := list.Iterator(); it.HasNext() == types.True; {
		result = append(result, it.Next())
	}
	return result
}
