// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// untyped is the source of a CEL map for a JSON object without a Go type.
type untyped map[string]any

func (u untyped) find(key string) (ref.Val, bool) {
	value, found := u[key]
	if !found {
		return nil, false
	}
	return untypedValue(value), true
}

func (u untyped) keys() []string { return slices.Sorted(maps.Keys(u)) }

func (u untyped) count() int { return len(u) }

// texts is the source of a CEL map for a Go map of strings, such as labels.
type texts map[string]string

func (t texts) find(key string) (ref.Val, bool) {
	value, found := t[key]
	if !found {
		return nil, false
	}
	return types.String(value), true
}

func (t texts) keys() []string { return slices.Sorted(maps.Keys(t)) }

func (t texts) count() int { return len(t) }

// untypedValue converts a value inside an unstructured object to a CEL value.
func untypedValue(value any) ref.Val {
	switch value := value.(type) {
	case map[string]any:
		return &mapping[untyped]{value}
	case []any:
		return types.NewDynamicList(untypedAdapter{}, value)
	default:
		return types.DefaultTypeAdapter.NativeToValue(value)
	}
}

// untypedAdapter converts the elements of lists in unstructured objects.
type untypedAdapter struct{}

func (untypedAdapter) NativeToValue(value any) ref.Val { return untypedValue(value) }
