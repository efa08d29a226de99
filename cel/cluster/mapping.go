// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// fields is a source of keys and values for a CEL map with string keys.
type fields interface {
	// find returns the value of a key, and false if the key does not exist.
	find(key string) (ref.Val, bool)
	// keys returns all keys in sorted order, so that iterating has the same result in every evaluation.
	keys() []string
	// count is the number of keys.
	count() int
}

// mapping is a CEL map over a fields value. It caches no values.
type mapping[F fields] struct {
	fields F
}

var (
	_ traits.Mapper = &mapping[texts]{}
	_ traits.Zeroer = &mapping[texts]{}
)

// Find returns the value of a key, and false if the key does not exist.
func (m *mapping[F]) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	return m.fields.find(string(name))
}

// Get returns the value of a key, or an error value if the key is missing.
func (m *mapping[F]) Get(key ref.Val) ref.Val {
	if value, found := m.Find(key); found {
		return value
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements CEL's operator "in".
func (m *mapping[F]) Contains(key ref.Val) ref.Val {
	_, found := m.Find(key)
	return types.Bool(found)
}

// Iterator iterates over the keys.
func (m *mapping[F]) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, m.fields.keys()).Iterator()
}

// Size returns the number of keys.
func (m *mapping[F]) Size() ref.Val { return types.Int(m.fields.count()) }

// IsZeroValue reports whether the map is empty, for optional.ofNonZeroValue.
func (m *mapping[F]) IsZeroValue() bool { return m.fields.count() == 0 }

// Equal compares the map with any other map.
func (m *mapping[F]) Equal(other ref.Val) ref.Val {
	otherMap, ok := other.(traits.Mapper)
	if !ok || m.Size() != otherMap.Size() {
		return types.False
	}
	for _, key := range m.fields.keys() {
		value, _ := m.fields.find(key)
		otherValue, found := otherMap.Find(types.String(key))
		if !found || types.Equal(value, otherValue) == types.False {
			return types.False
		}
	}
	return types.True
}

// ConvertToNative converts the map to a Go type, as CEL does for its own maps.
func (m *mapping[F]) ConvertToNative(t reflect.Type) (any, error) {
	return m.converted().ConvertToNative(t)
}

// ConvertToType converts the map to a CEL type, as CEL does for its own maps.
func (m *mapping[F]) ConvertToType(t ref.Type) ref.Val {
	if t == types.MapType {
		return m
	}
	return m.converted().ConvertToType(t)
}

func (m *mapping[F]) converted() traits.Mapper {
	values := make(map[ref.Val]ref.Val, m.fields.count())
	for _, key := range m.fields.keys() {
		values[types.String(key)], _ = m.fields.find(key)
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, values)
}

// Type returns CEL's map type.
func (m *mapping[F]) Type() ref.Type { return types.MapType }

// Value returns the map itself.
func (m *mapping[F]) Value() any { return m }
