// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
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

func TestDomainsOfNames(t *testing.T) {
	d := newDevice(attributes{"index": 1, "a.example.com/index": 2, "b.example.com/index": 3})
	requireTrue(t, "devices[0].attributes.map(domain, domain) == ['a.example.com', 'b.example.com', 'mla.example.com']", d)
	requireTrue(t, "devices[0].attributes.map(domain, devices[0].attributes[domain].index) == [2, 3, 1]", d)
}
