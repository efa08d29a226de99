// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// shape is where in a JSON value there are values that Go might refuse. It is nil for one
// that has none.
type shape struct {
	// fields are those of an object, by their names.
	fields map[string]*shape
	// elements is what each element of a list has, or each value of a map.
	elements *shape
	list     bool
	// accept returns what Go decodes in place of a value, which is the value itself if it
	// does that.
	accept func(value []byte) []byte
}

// answers are the shapes of what the API server answers when it is asked for objects of
// the kinds in [AddToScheme].
var answers = sync.OnceValue(func() map[schema.GroupVersionResource]*shape {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		panic(err) // The types of a module contradict each other.
	}
	result := map[schema.GroupVersionResource]*shape{}
	for kind, of := range scheme.AllKnownTypes() {
		if !reflect.PointerTo(of).Implements(reflect.TypeFor[metav1.Object]()) {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		result[resource] = answerOf(shapeOf(of))
	}
	return result
})

// answerOf is the shape of an object, of a list of them, and of the events of a watch.
func answerOf(object *shape) *shape {
	result := &shape{fields: map[string]*shape{
		"items":  {list: true, elements: object},
		"object": object,
	}}
	for name, field := range object.fields {
		result.fields[name] = field
	}
	return result
}

// shapeOf is the shape of a Go type in JSON. The types of objects do not contain themselves.
func shapeOf(of reflect.Type) *shape {
	switch of {
	case reflect.TypeFor[metav1.Time]():
		return &shape{accept: acceptTime}
	case reflect.TypeFor[resource.Quantity]():
		return &shape{accept: acceptQuantity}
	case reflect.TypeFor[intstr.IntOrString]():
		return &shape{accept: acceptIntOrString}
	}
	if reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	switch of.Kind() {
	case reflect.Int32:
		return &shape{accept: func(value []byte) []byte { return acceptInteger(value, 32) }}
	case reflect.Int64:
		return &shape{accept: func(value []byte) []byte { return acceptInteger(value, 64) }}
	case reflect.Pointer:
		return shapeOf(of.Elem())
	case reflect.Slice, reflect.Map:
		if elements := shapeOf(of.Elem()); elements != nil {
			return &shape{elements: elements, list: of.Kind() == reflect.Slice}
		}
	case reflect.Struct:
		if fields := fieldsOf(of); len(fields) > 0 {
			return &shape{fields: fields}
		}
	}
	return nil
}

// fieldsOf are the fields of a struct that have a shape, with those of embedded structs.
func fieldsOf(of reflect.Type) map[string]*shape {
	result := map[string]*shape{}
	for i := range of.NumField() {
		field := of.Field(i)
		found := shapeOf(field.Type)
		if found == nil {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" {
			result[name] = found
			continue
		}
		for name, inner := range found.fields {
			result[name] = inner
		}
	}
	return result
}
