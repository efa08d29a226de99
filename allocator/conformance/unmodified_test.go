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

// In a scheduler the objects are those of informers. Many read them at a time, so that even
// what nobody sees, such as the text that a quantity keeps once it was asked for, must not be
// written.

// modified is the outcome of an allocator that wrote to what it was given. It is like no other.
const modified kind = "modified"

// given is what an allocator is given: a case of its own, and a copy to compare it with.
type given struct {
	*scenario.Case
	state  structured.AllocatedState
	before *scenario.Case
	used   structured.AllocatedState
}

// giving copies a case such that no quantity has its text, as if drivers and users had
// written all of them in another way than Kubernetes does.
func giving(c *scenario.Case) given {
	own := given{Case: c.Clone()}
	own.eachQuantity(forget)
	own.state = own.State()
	own.before = own.Clone()
	own.used = own.before.State()
	return own
}

// eachQuantity visits all quantities that the allocator is given.
func (g given) eachQuantity(visit func(*resource.Quantity)) {
	for _, of := range []any{g.Slices, g.Claims, g.Shares, g.state.AggregatedCapacity} {
		eachQuantity(reflect.ValueOf(of), visit)
	}
}

// check returns what was modified, "" if nothing was.
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

// forget removes the text. Twice the opposite is the same.
func forget(quantity *resource.Quantity) {
	quantity.Neg()
	quantity.Neg()
}

// eachQuantity visits what the value refers to. What is no pointer, slice or map must be
// addressable.
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

// typesWithQuantities are those that were looked at, and whether there are any in them. Most
// of an object is of others.
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

// TestLooksAreNoticed: it is enough to ask one quantity for its text, wherever it is.
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
