// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"math"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device/bound/condition"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

// boxFunction converts a call of the function box. The call must list the coordinates one by one, and have constant sides.
func (a *analyzer) boxFunction(args []ast.Expr, s normal.Scope) propagate.Condition {
	value, list, over, ok := a.mapOf(args[0], s)
	sides, constant := ints(args[1])
	if !ok || !constant || value.Kind() != ast.ListKind || len(value.AsList().OptionalIndices()) > 0 {
		return propagate.Open{}
	}
	circles := make([]int64, len(sides))
	if len(args) == 3 {
		if circles, ok = ints(args[2]); !ok {
			return propagate.Open{}
		}
	}
	coordinates := value.AsList().Elements()
	if len(sides) == 0 || len(sides) > condition.MaxSides || len(coordinates) != len(sides) || len(circles) != len(sides) ||
		slices.Min(circles) < 0 || slices.Max(circles) > math.MaxInt32 {
		return propagate.Open{}
	}
	var axes []condition.Axis
	for i, coordinate := range coordinates {
		free, single := normal.References(coordinate, over.scope)
		if !single || len(free) != 1 || free[0] != over.Variable {
			return propagate.Open{}
		}
		axes = append(axes, condition.Axis{Leaf: a.newLeaf(coordinate, free), Circle: circles[i]})
	}
	return a.NewBox(list, axes, sides)
}

// ints recognizes a list of int constants. The list may be an element of a literal list, as in [[1, 2], [3]][0].
func ints(list ast.Expr) (result []int64, ok bool) {
	if tree.IsCall(list, operators.Index) {
		of, index := list.AsCall().Args()[0], list.AsCall().Args()[1]
		at, ok := tree.Literal[types.Int](index)
		if !ok || of.Kind() != ast.ListKind || len(of.AsList().OptionalIndices()) > 0 || at < 0 || int(at) >= of.AsList().Size() {
			return nil, false
		}
		return ints(of.AsList().Elements()[at])
	}
	if list.Kind() != ast.ListKind || len(list.AsList().OptionalIndices()) > 0 {
		return nil, false
	}
	for _, element := range list.AsList().Elements() {
		value, ok := tree.Literal[types.Int](element)
		if !ok {
			return nil, false
		}
		result = append(result, int64(value))
	}
	return result, true
}
