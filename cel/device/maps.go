// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// orderedMap is a map that iterates in the order of its keys. The order of a Go map is random, but expressions must be
// deterministic.
type orderedMap struct {
	traits.Mapper
	keys []string
}

func newOrderedMap(entries map[string]ref.Val) orderedMap {
	values := make(map[string]any, len(entries))
	for key, value := range entries {
		values[key] = value
	}
	return orderedMap{
		Mapper: types.NewStringInterfaceMap(onRead{types.DefaultTypeAdapter}, values),
		keys:   slices.Sorted(maps.Keys(entries)),
	}
}

func (m orderedMap) Iterator() traits.Iterator {
	return types.DefaultTypeAdapter.NativeToValue(m.keys).(traits.Iterable).Iterator()
}

// onRead copies quantities and errors at each read, because evaluations modify them and share devices. Comparing a quantity
// with a much larger one changes its representation, which functions such as isInteger depend on. In an error value, CEL stores
// the position where it first occurred.
type onRead struct {
	types.Adapter
}

func (a onRead) NativeToValue(value any) ref.Val {
	switch value := value.(type) {
	case apiservercel.Quantity:
		quantity := value.DeepCopy()
		return apiservercel.Quantity{Quantity: &quantity}
	case *types.Err:
		return types.WrapErr(value.Unwrap())
	default:
		return a.Adapter.NativeToValue(value)
	}
}

// domainMap returns an empty map for a missing domain, as in device selectors. So expressions can use "has" and "in" on names
// without testing the domain first.
type domainMap struct {
	orderedMap
}

var noEntries = newOrderedMap(nil)

// Find returns the map of a domain, for d.attributes.x and d.attributes['x'].
func (m domainMap) Find(key ref.Val) (ref.Val, bool) {
	if value, found := m.orderedMap.Find(key); found {
		return value, true
	}
	return noEntries, true
}
