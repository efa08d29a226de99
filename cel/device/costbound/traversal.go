// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package costbound

import (
	"math"
	"slices"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device"
)

// Some functions are charged for everything that a value contains. The type of the value bounds this amount, unless the type is
// dyn. An attribute has type dyn and is a scalar or a list of scalars. So every value of type dyn is a scalar or a list of
// scalars, unless the expression converts another value to dyn.

// traversal returns the cost of visiting a value with all its contents. size is the number of elements, or the length of a
// string.
func (w *walker) traversal(t *types.Type, size float64) float64 {
	switch t.Kind() {
	case types.StringKind, types.BytesKind:
		return traversed(size)
	case types.ListKind:
		element := t.Parameters()[0]
		return times(size, w.traversal(element, w.sizeOf(element)))
	case types.MapKind:
		key, value := t.Parameters()[0], t.Parameters()[1]
		return times(size, w.traversal(key, w.sizeOf(key))+w.traversal(value, w.sizeOf(value)))
	case types.DynKind:
		if w.nested {
			return math.Inf(1)
		}
		return max(traversed(w.text), times(w.list, traversed(w.text)))
	case types.AnyKind, types.TypeParamKind, types.UnknownKind, types.ErrorKind:
		return math.Inf(1)
	default:
		return 1
	}
}

// elementsOf returns the maximum number of elements if the value is a list. size is the size of the value, perhaps as a string.
func (w *walker) elementsOf(e ast.Expr, size float64) float64 {
	switch {
	case device.IsAttribute(w.checked, e):
		return float64(w.sizes.List)
	case w.typeOf(e).Kind() == types.DynKind && !w.nested:
		return min(size, w.list)
	default:
		return size
	}
}

// sizeOfEntry returns the maximum size of a value that is read from another value. For an attribute, it returns the limit of
// attributes. The size of the largest computed value would be too high, because a sum of two attributes may be a long string.
func (w *walker) sizeOfEntry(e ast.Expr) float64 {
	if device.IsAttribute(w.checked, e) {
		return float64(max(w.sizes.Text, w.sizes.List))
	}
	return w.sizeOf(w.typeOf(e))
}

// traversed returns the cost of reading a string.
func traversed(length float64) float64 {
	return max(1, math.Ceil(length*common.StringTraversalCostFactor))
}

// contains records that a value of type dyn may be or contain the given value: an element of the literal whole, or an operand
// of the call whole. It does nothing if the type of whole includes the type of value, as for [[x, y]], a list of lists.
func (w *walker) contains(whole, value ast.Expr) {
	of, is := w.typeOf(whole), w.typeOf(value)
	if !hasDyn(of) || is.IsEquivalentType(of) || slices.ContainsFunc(of.Parameters(), is.IsExactType) {
		return
	}
	w.nested = w.nested || !isFlat(is)
	if is.Kind() == types.ListKind {
		w.list = max(w.list, w.elements)
	}
}

// hasDyn reports whether a value of the type may have a part of unknown type.
func hasDyn(t *types.Type) bool {
	if t.Kind() == types.DynKind {
		return true
	}
	for _, parameter := range t.Parameters() {
		if hasDyn(parameter) {
			return true
		}
	}
	return false
}

// isFlat reports whether a value is a scalar or a list of scalars. A device of type dyn is neither: its fields can be maps.
func isFlat(t *types.Type) bool {
	if t.Kind() == types.ListKind {
		return isScalar(t.Parameters()[0])
	}
	return t.Kind() == types.DynKind || isScalar(t)
}

func isScalar(t *types.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.DurationKind, types.TimestampKind,
		types.StringKind, types.BytesKind, types.NullTypeKind, types.TypeKind:
		return true
	default:
		return false
	}
}
