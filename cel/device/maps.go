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

// orderedMap iterates in the order of its keys. Go's maps don't, and an
// expression must not have another result the next time.
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

// onRead hands out those values anew at each read that evaluations write to,
// although they share the device: comparing a quantity with a much larger one
// changes its representation, which functions such as isInteger see, and CEL
// notes in an error value where it was met first.
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

// domainMap answers a look-up of an unknown domain with an empty map, as the
// environment of device selectors does: "has" and "in" can then be used on the
// names without first asking for the domain.
type domainMap struct {
	orderedMap
}

var noEntries = newOrderedMap(nil)

// Find is what selection and indexing use.
func (m domainMap) Find(key ref.Val) (ref.Val, bool) {
	if value, found := m.orderedMap.Find(key); found {
		return value, true
	}
	return noEntries, true
}
