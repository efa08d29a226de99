// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// object is the source of a CEL map for a Go struct. The keys are the JSON names of the fields.
type object struct {
	value reflect.Value
	plan  *plan
}

// plan describes how the fields of a struct type are read.
type plan struct {
	// fields are sorted by name.
	fields []*property
	byName map[string]*property
}

type property struct {
	*value.FieldCacheEntry
	show converter
	// text is the index of the struct field if the JSON field is a plain string of the struct itself, otherwise -1. Most fields
	// that are read for each element of a list are plain strings, and reading them needs no cache. omitsEmpty is true if the
	// JSON omits the field when it is empty.
	text       int
	omitsEmpty bool
}

// plans caches the plan of each struct type, by reflect.Type.
var plans sync.Map

// planOf returns the plan of a struct type, and computes it when the first value of the type is read. It does not compute the
// plans of nested structs, because types may be recursive.
func planOf(t reflect.Type) *plan {
	if found, ok := plans.Load(t); ok {
		return found.(*plan)
	}
	found, _ := plans.LoadOrStore(t, newPlan(t))
	return found.(*plan)
}

func newPlan(t reflect.Type) *plan {
	result := &plan{byName: map[string]*property{}}
	for name, entry := range value.TypeReflectEntryOf(t).Fields() {
		at := &property{FieldCacheEntry: entry, show: showOf(entry.GetFrom(reflect.Zero(t)).Type())}
		at.text, at.omitsEmpty = textField(t, name)
		result.byName[name] = at
		result.fields = append(result.fields, at)
	}
	slices.SortFunc(result.fields, func(a, b *property) int { return cmp.Compare(a.JsonName, b.JsonName) })
	return result
}

// textField returns the index of the struct field with a JSON name, if the field is a plain string.
func textField(t reflect.Type, name string) (index int, omitsEmpty bool) {
	for i := range t.NumField() {
		field := t.Field(i)
		named, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if named != name || field.Anonymous || !field.IsExported() {
			continue
		}
		isPlain := field.Type.Kind() == reflect.String && !value.TypeReflectEntryOf(field.Type).CanConvertToUnstructured()
		if !isPlain || options != "" && options != "omitempty" {
			break
		}
		return i, options == "omitempty"
	}
	return -1, false
}

func (o object) find(key string) (ref.Val, bool) {
	at, ok := o.plan.byName[key]
	if !ok {
		return nil, false
	}
	if at.text >= 0 {
		text := o.value.Field(at.text).String()
		if text == "" && at.omitsEmpty {
			return nil, false
		}
		return types.String(text), true
	}
	v := at.GetFrom(o.value)
	if at.CanOmit(v) {
		return nil, false
	}
	return at.show(v), true
}

func (o object) keys() []string {
	result := make([]string, 0, len(o.plan.fields))
	for _, at := range o.plan.fields {
		if !at.CanOmit(at.GetFrom(o.value)) {
			result = append(result, at.JsonName)
		}
	}
	return result
}

func (o object) count() int { return len(o.keys()) }
