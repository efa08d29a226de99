// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"fmt"
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

// TestDefaultDomainIsThatOfEachDevice checks that an unqualified attribute name belongs to the domain of its own device's
// driver, not of the first device's driver.
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

// value is the attribute that expressions in this file read.
const value = "devices[0].attributes['mla.example.com'].value"

func TestAttributeTypes(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		check string
	}{
		"int":              {7, value + " + 1 == 8"},
		"zero":             {0, value + " == 0"},
		"bool":             {true, value},
		"false":            {false, "!" + value},
		"string":           {"root-1", value + ".startsWith('root')"},
		"empty string":     {"", value + " == ''"},
		"version":          {version("1.10.0"), value + ".isGreaterThan(semver('1.9.3'))"},
		"version equality": {version("1.10.0"), value + " == semver('1.10.0') && " + value + ".major() == 1"},
		"ints":             {[]int64{1, 2}, value + ".exists(x, x == 2) && " + value + ".size() == 2"},
		"no ints":          {[]int64{}, value + " == []"},
		"bools":            {[]bool{true, false}, value + " == [true, false]"},
		"strings":          {[]string{"a", "b"}, "'b' in " + value + " && " + value + "[0] == 'a'"},
		"versions":         {[]version{"1.0.0", "2.0.0"}, value + ".all(v, v.isLessThan(semver('2.0.1')))"},
		"dynamic equality": {7, value + " != 'seven'"},
	} {
		t.Run(name, func(t *testing.T) {
			requireTrue(t, test.check, newDevice(attributes{"value": test.value}))
		})
	}
}

// TestUnreadableAttributes checks that only expressions that read an unreadable attribute fail. The error has the position of
// the read.
func TestUnreadableAttributes(t *testing.T) {
	for name, test := range map[string]struct {
		value   any
		message string
	}{
		"type from the future":  {resourceapi.DeviceAttribute{}, "unsupported attribute value"},
		"not a version":         {version("one"), "parse semantic version"},
		"not a list of version": {[]version{"1.0.0", "two"}, "parse semantic version"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(attributes{"value": test.value, "index": 1})
			requireTrue(t, "devices.all(d, d.attributes['mla.example.com'].index == 1)", d)
			requireTrue(t, "devices.all(d, 'value' in d.attributes['mla.example.com'])", d)
			// Evaluate twice: the second error must have the position in the second expression, not the position of the first
			// failure.
			first := requireRuntimeError(t, test.message, value+" == 1", d)
			second := requireRuntimeError(t, test.message, "true &&\ndevices.size() == 1 && "+value+" == 1", d)
			require.Equal(t, 1, first.Line)
			require.Equal(t, 2, second.Line)
			require.Equal(t, first.Column+len("devices.size() == 1 && "), second.Column)
		})
	}
}

// huge is a quantity that does not fit into 64 bits in any scale.
const huge = "1000000000000000000000000000001"

const memory = "devices[0].capacity['mla.example.com'].memory"

func TestQuantities(t *testing.T) {
	for _, expression := range []string{
		memory + " == quantity('40960Mi')",
		memory + ".compareTo(quantity('40Gi')) == 0",
		memory + ".compareTo(quantity('41Gi')) == -1",
		memory + ".isGreaterThan(quantity('39Gi'))",
		memory + ".isLessThan(quantity('1e30'))",
		memory + ".add(quantity('1Gi')) == quantity('41Gi')",
		memory + ".sub(1).isLessThan(quantity('40Gi'))",
		memory + ".isInteger() && " + memory + ".asInteger() == 42949672960",
		"devices.map(d, d.capacity[d.driver].memory.asInteger()).sum() == 42949672960",
	} {
		t.Run(expression, func(t *testing.T) { requireTrue(t, expression, withCapacity("40Gi")) })
	}
	requireTrue(t, memory+".isGreaterThan(quantity('1e29'))", withCapacity("1e30"))
	requireTrue(t, memory+".add(quantity('1')).compareTo("+memory+") == 1", withCapacity(huge))
}

// TestQuantitiesAreNotChangedByEvaluations checks that one evaluation does not affect another. Comparing two quantities of
// different magnitude changes their representation, which the results of other functions depend on.
func TestQuantitiesAreNotChangedByEvaluations(t *testing.T) {
	d := withCapacity("40Gi")
	requireTrue(t, memory+".isInteger()", d)
	requireTrue(t, memory+".isLessThan(quantity('"+huge+"'))", d)
	requireTrue(t, memory+".isInteger()", d)

	big := withCapacity(huge)
	requireTrue(t, memory+".add(quantity('1')).isGreaterThan(quantity('"+huge+"'))", big)
	requireTrue(t, memory+" == quantity('"+huge+"')", big)
}

func TestMissingDomainIsAnEmptyMap(t *testing.T) {
	devices := ring(2)
	for _, expression := range []string{
		"devices.all(d, d.attributes['unknown.example.com'] == {})",
		"devices.all(d, d.attributes['unknown.example.com'].size() == 0)",
		"devices.all(d, d.capacity['unknown.example.com'] == {})",
		"devices.all(d, !has(d.attributes['unknown.example.com'].index))",
		"devices.all(d, !('index' in d.attributes['unknown.example.com']))",
		"devices.all(d, d.attributes['unknown.example.com'].?index.orValue(7) == 7)",
		"devices.all(d, d.attributes[?'unknown.example.com'][?'index'].orValue(7) == 7)",
		"devices.all(d, !('unknown.example.com' in d.attributes))",
		"devices.all(d, 'mla.example.com' in d.attributes)",
	} {
		t.Run(expression, func(t *testing.T) { requireTrue(t, expression, devices...) })
	}
}

func TestMissingName(t *testing.T) {
	devices := append(ring(1), newDevice(attributes{"row": 1}))
	for _, expression := range []string{
		"devices.map(d, has(d.attributes['mla.example.com'].index)) == [true, false]",
		"devices.map(d, 'index' in d.attributes['mla.example.com']) == [true, false]",
		"devices.map(d, d.attributes['mla.example.com'].?index.orValue(-1)) == [0, -1]",
		"devices.map(d, d.attributes['mla.example.com'].?index.hasValue()) == [true, false]",
		"devices.filter(d, has(d.attributes['mla.example.com'].row)).all(d, d.attributes['mla.example.com'].row == 1)",
		"devices.exists(d, d.attributes['mla.example.com'].index == 0)", // true || error
	} {
		t.Run(expression, func(t *testing.T) { requireTrue(t, expression, devices...) })
	}
	for _, expression := range []string{
		"devices.all(d,\n  d.attributes['mla.example.com'].index == 0)",
		"devices.map(d,\n  d.attributes['mla.example.com'].index) == [0]",
		"devices.all(d,\n  d.attributes['unknown.example.com'].index == 0)",
	} {
		t.Run(expression, func(t *testing.T) {
			failure := requireRuntimeError(t, "no such key: index. consider using CEL optional chaining", expression, devices...)
			require.Equal(t, 2, failure.Line)
		})
	}
	failure := requireRuntimeError(t, "no such key: memory", "devices.all(d, d.capacity['mla.example.com'].memory == quantity('1'))", devices...)
	require.Equal(t, 45, failure.Column)
}

// TestIterationIsDeterministic uses expressions whose value depends on the order of names in maps.
func TestIterationIsDeterministic(t *testing.T) {
	const names = 20
	many := attributes{}
	for i := range names {
		many[resourceapi.QualifiedName(fmt.Sprintf("id%02d", i))] = i
		many[resourceapi.QualifiedName(fmt.Sprintf("d%02d.example.com/id", i))] = i
	}
	for _, expression := range []string{
		"devices[0].attributes['mla.example.com'].map(id, int(id.substring(2))) == lists.range(20)",
		"devices[0].attributes['mla.example.com'].transformList(id, value, value) == lists.range(20)",
		"devices[0].attributes.filter(domain, domain != 'mla.example.com').map(domain, int(domain.substring(1, 3))) == lists.range(20)",
		"devices[0].attributes.transformList(domain, ids, domain != 'mla.example.com', ids.id) == lists.range(20)",
	} {
		for range 5 { // a fresh device has fresh Go maps
			requireTrue(t, expression, newDevice(many))
		}
	}
}

func TestMapsOfTwoDevicesCompare(t *testing.T) {
	a, same, other := attributes{"index": 1, "x.example.com/y": "z"}, attributes{"index": 1, "x.example.com/y": "z"}, attributes{"index": 1}
	requireTrue(t, "devices[0].attributes == devices[1].attributes", newDevice(a), newDevice(same))
	requireFalse(t, "devices[0].attributes == devices[1].attributes", newDevice(a), newDevice(other))
	requireFalse(t, "devices[0].attributes == devices[1].attributes", newDevice(other), newDevice(a))
	requireTrue(t, "devices.map(d, d.attributes).distinct().size() == 2", newDevice(a), newDevice(other), newDevice(same))
}
