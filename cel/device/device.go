// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	resourceapi "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/utils/ptr"
)

// Device is a device as a CEL value. Its methods are called by CEL. It converts an attribute or capacity when an expression
// first reads it, and stores the CEL value.
type Device struct {
	driver string
	source *resourceapi.Device

	once       sync.Once
	attributes traits.Mapper
	capacity   traits.Mapper
	// labels, devices and pods are set for nodes only. They are nil for a device.
	labels  traits.Mapper
	devices *nodeDevices
	pods    *nodePods
}

var (
	_ ref.Val            = &Device{}
	_ traits.Indexer     = &Device{}
	_ traits.FieldTester = &Device{}
)

// New returns the CEL value of a driver's device. The caller must not modify device afterwards. Values of two calls are never
// equal, so a caller that puts a device into several sets must call New only once.
func New(driver string, device *resourceapi.Device) *Device {
	return &Device{driver: driver, source: device}
}

// Get returns the value of a field, such as d.driver.
func (d *Device) Get(name ref.Val) ref.Val {
	field, ok := name.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(name)
	}
	switch field {
	case driverField:
		return types.String(d.driver)
	case attributesField:
		d.once.Do(d.convert)
		return d.attributes
	case capacityField:
		d.once.Do(d.convert)
		return d.capacity
	case allowMultipleAllocationsField:
		return types.Bool(ptr.Deref(d.source.AllowMultipleAllocations, false))
	}
	if d.driver == NodeDriver {
		d.once.Do(d.convert)
		switch field {
		case labelsField:
			return d.labels
		case devicesField:
			return d.devices.list
		case podField:
			return d.pods.one
		case podsField:
			return d.pods.list
		}
	}
	return types.NewErr("no such field '%s'", field)
}

// IsSet implements CEL's has: it reports whether a field exists.
func (d *Device) IsSet(name ref.Val) ref.Val {
	field, ok := name.(types.String)
	_, has := d.declared().Fields[string(field)]
	return types.Bool(ok && has)
}

// declared returns the type of the element that the environment declares: device or node.
func (d *Device) declared() *apiservercel.DeclType {
	if d.driver == NodeDriver {
		return nodeType
	}
	return deviceType
}

// Equal reports whether both values come from the same call of New.
func (d *Device) Equal(other ref.Val) ref.Val {
	return types.Bool(ref.Val(d) == other)
}

// ConvertToNative converts only to the type *Device. CEL converts only results of evaluations, and a device is never a result.
func (d *Device) ConvertToNative(t reflect.Type) (any, error) {
	if reflect.TypeOf(d).AssignableTo(t) {
		return d, nil
	}
	return nil, fmt.Errorf("type conversion error from '%s' to '%v'", d.Type().TypeName(), t)
}

// ConvertToType supports only type(device).
func (d *Device) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return d.declared().CelType()
	}
	return types.NewErr("type conversion error from '%s' to '%s'", d.Type().TypeName(), t)
}

// Type returns the type of the elements of "devices" or "nodes".
func (d *Device) Type() ref.Type { return d.declared().CelType() }

// Value returns the device itself.
func (d *Device) Value() any { return d }

func (d *Device) convert() {
	attributes := byDomains(d.driver, d.source.Attributes, attributeValue)
	if d.driver == NodeDriver {
		d.labels = newOrderedMap(attributes[labelsDomain])
		delete(attributes, labelsDomain)
		delete(attributes, NodeDriver)
		delete(attributes, devicesDomain)
		delete(attributes, podsDomain)
		d.devices, d.pods = devicesOf(d.source), podsOf(d.source)
	}
	d.attributes = domains(attributes)
	d.capacity = domains(byDomains(d.driver, d.source.Capacity, capacityValue))
}
