// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/propagate"
	"math"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/tree"
)

// boxFunction reads the function: the coordinates are written one by one, and the sides are constants.
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
	if len(sides) == 0 || len(sides) > maxSides || len(coordinates) != len(sides) || len(circles) != len(sides) ||
		slices.Min(circles) < 0 || slices.Max(circles) > math.MaxInt32 {
		return propagate.Open{}
	}
	n := &box{list: list, size: 1, general: propagate.Open{}}
	for i, coordinate := range coordinates {
		free, single := normal.References(coordinate, over.scope)
		if !single || len(free) != 1 || free[0] != over.Variable {
			return propagate.Open{}
		}
		n.axes = append(n.axes, axis{a.newLeaf(coordinate, free), circles[i]})
	}
	inOrders(sides, nil, func(order []int64) {
		var distances []outcome.Limits
		for _, side := range order {
			distances = append(distances, outcome.Limits{Least: outcome.Saturated(side, -1), Most: outcome.Saturated(side, -1)})
		}
		n.sides = append(n.sides, distances)
	})
	n.Derivation = a.newDerivation()
	return n
}

// inOrders calls f with the numbers, behind those that stand first, in each different order.
func inOrders(numbers, first []int64, f func([]int64)) {
	if len(numbers) == 0 {
		f(first)
	}
	for i, n := range numbers {
		if !slices.Contains(numbers[:i], n) {
			inOrders(slices.Delete(slices.Clone(numbers), i, i+1), append(slices.Clone(first), n), f)
		}
	}
}

// ints recognizes a list of constants, also as an element of a list that is written out: [[1, 2], [3]][0].
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
