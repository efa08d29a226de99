// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package malformed

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// requireDrawn requires that every field of a type, and of the type's list elements, is set in at least one of the objects.
func requireDrawn(t *testing.T, path string, values []reflect.Value) {
	t.Helper()
	var set []reflect.Value
	for _, v := range values {
		if !v.IsZero() {
			set = append(set, v)
		}
	}
	require.NotEmpty(t, set, "%s is never set", path)
	switch of := set[0].Type(); of.Kind() {
	case reflect.Pointer:
		requireDrawn(t, path, each(set, reflect.Value.Elem))
	case reflect.Slice:
		requireDrawn(t, path+"[]", each(set, func(v reflect.Value) reflect.Value { return v.Index(0) }))
	case reflect.Struct:
		for i := range of.NumField() {
			requireDrawn(t, path+"."+of.Field(i).Name, each(set, func(v reflect.Value) reflect.Value { return v.Field(i) }))
		}
	default:
	}
}

func each(values []reflect.Value, do func(reflect.Value) reflect.Value) []reflect.Value {
	var result []reflect.Value
	for _, v := range values {
		result = append(result, do(v))
	}
	return result
}

func TestEveryFieldOfPlacementsIsDrawn(t *testing.T) {
	var specs []reflect.Value
	for seed := range uint64(2000) {
		specs = append(specs, reflect.ValueOf(Placement(random(seed)).Spec))
	}
	requireDrawn(t, "spec", specs)
}
