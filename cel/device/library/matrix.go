// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// rowsOf converts a list of lists of bools. failure is an error value if the value has another type.
func rowsOf(value ref.Val) (rows [][]bool, failure ref.Val) {
	failure = each(value, func(value ref.Val) ref.Val {
		var row []bool
		failure := each(value, func(value ref.Val) ref.Val {
			joined, ok := value.(types.Bool)
			if !ok {
				return types.MaybeNoSuchOverloadErr(value)
			}
			row = append(row, bool(joined))
			return nil
		})
		rows = append(rows, row)
		return failure
	})
	return rows, failure
}

// intsOf converts a list of ints. failure is an error value if the value has another type.
func intsOf(value ref.Val) (numbers []int64, failure ref.Val) {
	failure = each(value, func(value ref.Val) ref.Val {
		number, ok := value.(types.Int)
		if !ok {
			return types.MaybeNoSuchOverloadErr(value)
		}
		numbers = append(numbers, int64(number))
		return nil
	})
	return numbers, failure
}

// each calls visit for the elements of a list, until visit returns an error value. It returns this error value.
func each(value ref.Val, visit func(ref.Val) ref.Val) ref.Val {
	list, ok := value.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(value)
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		if failure := visit(it.Next()); failure != nil {
			return failure
		}
	}
	return nil
}
