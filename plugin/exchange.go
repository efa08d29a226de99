// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"reflect"
	"unsafe"

	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
)

// This file is the only one that accesses private state of another package.
//
// Upstream's plugin makes its allocator in PreFilter and keeps it in a private field of its private cycle state. It has no
// option to use another allocator. The alternative is a copy of the whole plugin, which would miss every later fix. A new
// version of Kubernetes must not turn this access into silent corruption. So the plugin checks the type of the cycle state, and
// the name and type of the field, when the scheduler starts. The scheduler does not start if anything differs.

const (
	stateTypeName  = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources.stateData"
	allocatorField = "allocator"
)

// exchange replaces the allocator in the cycle state of upstream's plugin.
type exchange struct {
	state  reflect.Type // pointer to the private type
	offset uintptr      // of the field
}

// newExchange returns an error unless data, written by upstream's PreFilter, has the expected type and field.
func newExchange(data fwk.StateData) (*exchange, error) {
	t := reflect.TypeOf(data)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, incompatible("its cycle state is %v, not a pointer to a struct", t)
	}
	if name := t.Elem().PkgPath() + "." + t.Elem().Name(); name != stateTypeName {
		return nil, incompatible("its cycle state is a %s, not a %s", name, stateTypeName)
	}
	return newFieldExchange(t)
}

func newFieldExchange(t reflect.Type) (*exchange, error) {
	field, found := t.Elem().FieldByName(allocatorField)
	if !found {
		return nil, incompatible("its cycle state %v has no field %s", t, allocatorField)
	}
	if want := reflect.TypeFor[structured.Allocator](); field.Type != want {
		return nil, incompatible("the field %s of its cycle state %v is a %v, not a %v", allocatorField, t, field.Type, want)
	}
	return &exchange{state: t, offset: field.Offset}, nil
}

func incompatible(format string, args ...any) error {
	return fmt.Errorf("this build of celset does not fit the DynamicResources plugin it was compiled with: "+format+
		": build it with the version of Kubernetes that go.mod names", args...)
}

// allocator returns a pointer to the allocator field of data. It returns an error unless data has the type checked by
// newExchange.
func (e *exchange) allocator(data fwk.StateData) (*structured.Allocator, error) {
	if t := reflect.TypeOf(data); t != e.state {
		return nil, incompatible("its cycle state is %v, but at start it was %v", t, e.state)
	}
	return (*structured.Allocator)(unsafe.Add(reflect.ValueOf(data).UnsafePointer(), e.offset)), nil
}
