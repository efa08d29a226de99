// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// bounded makes a call itself where cel-go would make a value that later calls can't
// judge, or take time that the size of the operands does not tell. nil if there is
// nothing to do.
func bounded(function string, values *operands) ref.Val {
	switch function {
	case operators.Add:
		return joined(values.first, values.second)
	case "quantity", "isQuantity":
		clampQuantity(values)
	case "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getMonth",
		"getHours", "getMinutes", "getSeconds", "getMilliseconds":
		return inKeptZone(function, values)
	}
	return nil
}

// joined copies two lists into one. cel-go links them: a list of a thousand links takes a
// thousand steps for each element that is read, and a list that is linked to itself sixty
// times has more elements than there is memory. The list that a macro makes is appended to
// in place; that stays cel-go's.
func joined(first, second ref.Val) ref.Val {
	one, ok := first.(traits.Lister)
	if !ok {
		return nil
	}
	if _, ok := first.(traits.MutableLister); ok {
		return nil
	}
	two, ok := second.(traits.Lister)
	if !ok {
		return nil
	}
	// CEL returns the other one if one is empty.
	if one.Size() == types.IntZero || two.Size() == types.IntZero {
		return nil
	}
	elements := make([]ref.Val, 0, int(one.Size().(types.Int)+two.Size().(types.Int)))
	for _, list := range []traits.Lister{one, two} {
		for it := list.Iterator(); it.HasNext() == types.True; {
			elements = append(elements, it.Next())
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, elements)
}
