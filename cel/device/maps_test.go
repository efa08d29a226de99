// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

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
