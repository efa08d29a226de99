// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

// value is what expressions in this file read.
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

// An attribute that can't be read fails the expressions that read it, at the
// place where they do, and no other.
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
			// Twice, because the position must be that of this expression and not of
			// the first one that failed.
			first := requireRuntimeError(t, test.message, value+" == 1", d)
			second := requireRuntimeError(t, test.message, "true &&\ndevices.size() == 1 && "+value+" == 1", d)
			require.Equal(t, 1, first.Line)
			require.Equal(t, 2, second.Line)
			require.Equal(t, first.Column+len("devices.size() == 1 && "), second.Column)
		})
	}
}

// huge does not fit into 64 bits whatever the scale.
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

// Comparing quantities of different magnitude changes their representation,
// which other functions can see. Evaluations must not see each other.
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

// Each of the expressions has another value for each order of the names.
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
