// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/base64"
	"reflect"
	"slices"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// converter converts Go values of one type to CEL values that look like the JSON of the Go value.
type converter func(reflect.Value) ref.Val

// converters caches the converter of each type, by reflect.Type.
var converters sync.Map

func showOf(t reflect.Type) converter {
	if found, ok := converters.Load(t); ok {
		return found.(converter)
	}
	found, _ := converters.LoadOrStore(t, newShow(t))
	return found.(converter)
}

func newShow(t reflect.Type) converter {
	if entry := value.TypeReflectEntryOf(t); entry.CanConvertToUnstructured() {
		return showConverted(entry)
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(v reflect.Value) ref.Val { return types.Bool(v.Bool()) }
	case reflect.String:
		return func(v reflect.Value) ref.Val { return types.String(v.String()) }
	case reflect.Float32, reflect.Float64:
		return func(v reflect.Value) ref.Val { return types.Double(v.Float()) }
	case reflect.Pointer, reflect.Interface:
		return showElement
	case reflect.Struct:
		return showStruct(t)
	case reflect.Slice, reflect.Array:
		return newShowList(t)
	case reflect.Map:
		return newShowMap(t)
	default:
		return newShowNumber(t)
	}
}

func newShowNumber(t reflect.Type) converter {
	switch {
	case reflect.Zero(t).CanInt():
		return func(v reflect.Value) ref.Val { return types.Int(v.Int()) }
	case reflect.Zero(t).CanUint():
		return func(v reflect.Value) ref.Val { return types.Uint(v.Uint()).ConvertToType(types.IntType) }
	default:
		return func(v reflect.Value) ref.Val { return types.NewErr("a value of type %s can't be read", v.Type()) }
	}
}

// showConverted returns the converter for a type with its own JSON encoding, such as a quantity or a time.
func showConverted(entry *value.TypeReflectCacheEntry) converter {
	return func(v reflect.Value) ref.Val {
		if !v.CanAddr() {
			v = addressable(v)
		}
		converted, err := entry.ToUnstructured(v)
		if err != nil {
			return types.WrapErr(err)
		}
		return untypedValue(converted)
	}
}

// addressable returns an addressable copy of a value, so that methods with a pointer receiver can be called.
func addressable(v reflect.Value) reflect.Value {
	result := reflect.New(v.Type()).Elem()
	result.Set(v)
	return result
}

func showElement(v reflect.Value) ref.Val {
	if v.IsNil() {
		return types.NullValue
	}
	return showOf(v.Elem().Type())(v.Elem())
}

func showStruct(t reflect.Type) converter {
	plan := sync.OnceValue(func() *plan { return planOf(t) })
	return func(v reflect.Value) ref.Val { return &mapping[object]{object{v, plan()}} }
}

func newShowList(t reflect.Type) converter {
	switch {
	case t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice:
		return orNull(func(v reflect.Value) ref.Val { return types.String(base64.StdEncoding.EncodeToString(v.Bytes())) })
	case t == reflect.TypeFor[[]clusterv1.ManagedClusterClaim]():
		return orNull(showClaims)
	case t.Elem().Kind() == reflect.Struct && !value.TypeReflectEntryOf(t.Elem()).CanConvertToUnstructured():
		return orNull(showStructs(t.Elem()))
	default:
		return orNull(func(v reflect.Value) ref.Val {
			element, values := showOf(t.Elem()), make([]ref.Val, v.Len())
			for i := range values {
				values[i] = element(v.Index(i))
			}
			return types.NewRefValList(types.DefaultTypeAdapter, values)
		})
	}
}

// showStructs returns the converter for a list of structs. The converter allocates all elements at once, which is cheaper than
// one by one, and converts a field of an element only when an expression reads it.
func showStructs(element reflect.Type) converter {
	plan := sync.OnceValue(func() *plan { return planOf(element) })
	return func(v reflect.Value) ref.Val {
		elements, values := make([]mapping[object], v.Len()), make([]ref.Val, v.Len())
		for i := range elements {
			elements[i].fields = object{v.Index(i), plan()}
			values[i] = &elements[i]
		}
		return types.NewRefValList(types.DefaultTypeAdapter, values)
	}
}

func newShowMap(t reflect.Type) converter {
	switch {
	case t.Key().Kind() != reflect.String:
		return func(v reflect.Value) ref.Val {
			return types.NewErr("a map with keys of type %s can't be read", v.Type().Key())
		}
	case t == reflect.TypeFor[map[string]string]():
		return orNull(func(v reflect.Value) ref.Val { return &mapping[texts]{v.Interface().(map[string]string)} })
	default:
		return orNull(func(v reflect.Value) ref.Val { return &mapping[entries]{entries{v}} })
	}
}

// orNull wraps the converter of a slice or map so that nil becomes null, as in JSON.
func orNull(f converter) converter {
	return func(v reflect.Value) ref.Val {
		if v.Kind() != reflect.Array && v.IsNil() {
			return types.NullValue
		}
		return f(v)
	}
}

// entries is the source of a CEL map for a Go map with string keys.
type entries struct {
	value reflect.Value
}

func (e entries) find(key string) (ref.Val, bool) {
	v := e.value.MapIndex(reflect.ValueOf(key).Convert(e.value.Type().Key()))
	if !v.IsValid() {
		return nil, false
	}
	return showOf(v.Type())(v), true
}

func (e entries) keys() []string {
	result := make([]string, 0, e.value.Len())
	for _, key := range e.value.MapKeys() {
		result = append(result, key.String())
	}
	slices.Sort(result)
	return result
}

func (e entries) count() int { return e.value.Len() }
