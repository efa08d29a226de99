// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/conformance/scenario"
)

// In a scheduler, informers own the objects and other goroutines read them. So the allocator must not even write fields that
// comparisons don't show, such as the text that a quantity caches when it is formatted.

// modified is the outcome of an allocator that wrote to its input. It never equals another kind.
const modified kind = "modified"

// given is an allocator's own copy of a case, with a second copy for comparison.
type given struct {
	*scenario.Case
	state  structured.AllocatedState
	before *scenario.Case
	used   structured.AllocatedState
}

// giving copies a case and removes the cached texts of all its quantities. So all look like quantities in non-canonical form.
func giving(c *scenario.Case) given {
	own := given{Case: c.Clone()}
	own.eachQuantity(forget)
	own.state = own.State()
	own.before = own.Clone()
	own.used = own.before.State()
	return own
}

// eachQuantity calls visit for each quantity in the input.
func (g given) eachQuantity(visit func(*resource.Quantity)) {
	for _, of := range []any{g.Slices, g.Claims, g.Shares, g.state.AggregatedCapacity} {
		eachQuantity(reflect.ValueOf(of), visit)
	}
}

// check returns the name of the part of the input that the allocator modified, or "".
func (g given) check() string {
	for _, of := range []struct {
		what        string
		got, before any
	}{
		{"node", g.Node, g.before.Node},
		{"slices", g.Slices, g.before.Slices},
		{"classes", g.Classes, g.before.Classes},
		{"claims", g.Claims, g.before.Claims},
		{"shares", g.Shares, g.before.Shares},
		{"allocated state", g.state, g.used},
	} {
		if !reflect.DeepEqual(of.got, of.before) {
			return fmt.Sprintf("the %s: %#v, it was %#v", of.what, of.got, of.before)
		}
	}
	return ""
}

var quantityType = reflect.TypeFor[resource.Quantity]()

// forget removes the cached text of a quantity. Negating it twice does that.
func forget(quantity *resource.Quantity) {
	quantity.Neg()
	quantity.Neg()
}

// eachQuantity calls visit for each quantity in v. v must be addressable unless it is a pointer, slice or map.
func eachQuantity(v reflect.Value, visit func(*resource.Quantity)) {
	if v.Type() == quantityType {
		visit(v.Addr().Interface().(*resource.Quantity))
		return
	}
	if !hasQuantities(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachQuantity(v.Elem(), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachQuantity(v.Field(i), visit)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachQuantity(v.Index(i), visit)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(key))
			eachQuantity(element, visit)
			v.SetMapIndex(key, element)
		}
	}
}

// typesWithQuantities caches which types contain quantities, because most types in an API object contain none.
var typesWithQuantities sync.Map // reflect.Type -> bool

func hasQuantities(t reflect.Type) bool {
	if known, ok := typesWithQuantities.Load(t); ok {
		return known.(bool)
	}
	has := t == quantityType
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		has = hasQuantities(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			has = has || t.Field(i).IsExported() && hasQuantities(t.Field(i).Type)
		}
	}
	typesWithQuantities.Store(t, has)
	return has
}

// TestLooksAreNoticed checks that the comparison fails if a single quantity was formatted.
func TestLooksAreNoticed(t *testing.T) {
	c, err := scenario.Load(filepath.Join("testdata", "range-with-text.yaml"))
	require.NoError(t, err)
	require.Empty(t, giving(c).check())
	quantities := 0
	giving(c).eachQuantity(func(*resource.Quantity) { quantities++ })
	require.Equal(t, 12, quantities)
	for look := range quantities {
		of, i := giving(c), 0
		of.eachQuantity(func(quantity *resource.Quantity) {
			if i == look {
				_ = quantity.String()
			}
			i++
		})
		require.NotEmpty(t, of.check())
	}
}
