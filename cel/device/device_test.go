// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"reflect"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel/device"
)

func TestFields(t *testing.T) {
	shared := device.New(driver, &resourceapi.Device{
		AllowMultipleAllocations: ptr.To(true),
		Attributes:               attributes{"index": 3, "other.example.com/index": 4}.api(),
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"memory":                   {Value: resource.MustParse("40Gi")},
			"other.example.com/memory": {Value: resource.MustParse("1Gi")},
		},
	})
	for _, expression := range []string{
		"devices[0].driver == 'mla.example.com'",
		"devices[0].attributes['mla.example.com'].index == 3",
		"devices[0].attributes['mla.example.com']['index'] == 3",
		"devices[0].attributes['other.example.com'].index == 4",
		"devices[0].capacity['mla.example.com'].memory == quantity('40Gi')",
		"devices[0].capacity['other.example.com'].memory == quantity('1Gi')",
		"devices[0].allowMultipleAllocations",
		"has(devices[0].driver) && has(devices[0].attributes) && has(devices[0].capacity) && has(devices[0].allowMultipleAllocations)",
		"!has(dyn(devices[0]).name)",
		"devices[0].?driver.orValue('') == 'mla.example.com'",
		"type(devices[0]) == type(devices[0])",
		"devices.size() == 1",
	} {
		t.Run(expression, func(t *testing.T) { requireTrue(t, expression, shared) })
	}
}

func TestZeroDevice(t *testing.T) {
	empty := device.New(driver, &resourceapi.Device{})
	requireFalse(t, "devices[0].allowMultipleAllocations", empty)
	requireTrue(t, "devices[0].attributes == {} && devices[0].capacity == {}", empty)
	requireTrue(t, "devices[0].attributes.size() == 0", empty)
	requireTrue(t, "devices == [] && devices.all(d, false)")
}

func TestNoSuchField(t *testing.T) {
	_ = requireRuntimeError(t, "no such field 'name'", "dyn(devices[0]).name == 'mla-0'", ring(1)...)
	_ = requireRuntimeError(t, "no such overload", "dyn(devices[0])[1] == 'mla-0'", ring(1)...)
	_ = requireRuntimeError(t, "no such overload: string(kubernetes.DRADevice)", "string(dyn(devices[0])) == ''", ring(1)...)
}

// "An unqualified attribute name belongs to the domain of its own device's
// driver": not to that of the first device.
func TestDefaultDomainIsThatOfEachDevice(t *testing.T) {
	gpu := device.New("gpu.example.com", &resourceapi.Device{Attributes: attributes{"index": 1, "nic.example.com/index": 20}.api()})
	nic := device.New("nic.example.com", &resourceapi.Device{Attributes: attributes{"index": 2}.api()})
	requireTrue(t, `devices.map(d, d.driver) == ['gpu.example.com', 'nic.example.com']`, gpu, nic)
	requireTrue(t, `devices.map(d, d.attributes[d.driver].index) == [1, 2]`, gpu, nic)
	requireTrue(t, `devices.map(d, d.attributes['nic.example.com'].index) == [20, 2]`, gpu, nic)
	requireTrue(t, `devices.map(d, 'gpu.example.com' in d.attributes) == [true, false]`, gpu, nic)
}

func TestEqualityIsIdentity(t *testing.T) {
	a, twin := newDevice(attributes{"index": 1}), newDevice(attributes{"index": 1})
	requireTrue(t, "devices[0] != devices[1]", a, twin)
	requireTrue(t, "devices[0].attributes == devices[1].attributes", a, twin)
	requireTrue(t, "devices.all(d, d == d)", a, twin)
	requireTrue(t, "devices.all(d, devices.exists_one(o, o == d))", a, twin)
	requireTrue(t, "devices[0] in devices && devices.indexOf(devices[1]) == 1", a, twin)
	requireTrue(t, "devices[0] == devices[1]", a, a)
	requireTrue(t, "devices.all(d, devices.filter(o, d == o).size() == 2)", a, a)
	requireTrue(t, "sets.equivalent(devices, [devices[0]])", a, a)
	requireFalse(t, "sets.equivalent(devices, [devices[0]])", a, twin)
	requireFalse(t, "dyn(devices[0]) == dyn(1)", a)
}

func TestConversionsToGo(t *testing.T) {
	d := ring(1)[0]
	native, err := d.ConvertToNative(reflect.TypeFor[*device.Device]())
	require.NoError(t, err)
	require.Same(t, d, native)
	require.Same(t, d, d.Value())
	_, err = d.ConvertToNative(reflect.TypeFor[string]())
	require.EqualError(t, err, "type conversion error from 'kubernetes.DRADevice' to 'string'")
	require.Equal(t, ref.Val(types.False), d.IsSet(types.Int(1)))
	require.ErrorContains(t, d.ConvertToType(types.StringType).Value().(error), "type conversion error from 'kubernetes.DRADevice' to 'string'")
}
