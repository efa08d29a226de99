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

// This file is the only one that touches private state of another package.
//
// Upstream's plugin makes its allocator in PreFilter, keeps it in a private
// field of the private type of its cycle state, and has no option to have it made
// elsewhere. The alternative to reaching into that field is a copy of the whole
// plugin, which would miss every later fix. So that a new version of Kubernetes
// can't turn this into silent corruption, type, field name and field type are
// checked when the scheduler starts, and it does not start if anything differs.

const (
	stateTypeName  = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources.stateData"
	allocatorField = "allocator"
)

// exchange puts an allocator into the cycle state of upstream's plugin.
type exchange struct {
	state  reflect.Type // pointer to the private type
	offset uintptr      // of the field
}

// newExchange checks that data, which upstream's PreFilter wrote, is what this
// file expects.
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

// allocator returns the field. data must be of the type that was checked.
func (e *exchange) allocator(data fwk.StateData) (*structured.Allocator, error) {
	if t := reflect.TypeOf(data); t != e.state {
		return nil, incompatible("its cycle state is %v, at start it was %v", t, e.state)
	}
	return (*structured.Allocator)(unsafe.Add(reflect.ValueOf(data).UnsafePointer(), e.offset)), nil
}
