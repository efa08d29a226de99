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

// Some functions are charged with all that a value contains. How much that is can be told
// from its type, but for dyn. An attribute is a scalar or a list of such; that a value of
// type dyn is no more than that is so as long as nothing else is made one.

// traversal is the cost of going through a value with everything in it, if it has the given
// number of elements or, as a string, that length.
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

// elementsOf is the number of elements of a value of the given size that is used as a list:
// of scalars none can be.
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

// sizeOfEntry is that of what is taken out of something else. An attribute is no larger for
// what is made of others: without that a few sums of attributes would be taken for long
// strings.
func (w *walker) sizeOfEntry(e ast.Expr) float64 {
	if device.IsAttribute(w.checked, e) {
		return float64(max(w.sizes.Text, w.sizes.List))
	}
	return w.sizeOf(w.typeOf(e))
}

// traversed is the cost of going through a string.
func traversed(length float64) float64 {
	return max(1, math.Ceil(length*common.StringTraversalCostFactor))
}

// contains notes that a value becomes part of another, or is returned as one of another
// type. A part of its own type is nothing new: [[x, y]] is a list of lists.
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

// hasDyn reports whether a value of the type may have a part of which the type is not known.
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

// isFlat reports whether a value is a scalar or a list of such. Of a device that is not known
// to be one, fields can be taken that are maps.
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
