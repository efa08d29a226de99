// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

func node(labels map[string]string, x int64) *device.Device {
	source := &resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"d/x": {IntValue: &x}}}
	for key, value := range labels {
		source.Attributes[device.NodeLabel(key)] = resourceapi.DeviceAttribute{StringValue: ptr.To(value)}
	}
	return device.New(device.NodeDriver, source)
}

func TestNodes(t *testing.T) {
	e, err := device.NewNodeEnvironment(cel.Config{})
	require.NoError(t, err)
	nodes := []*device.Device{node(map[string]string{"example.com/rack": "r1", "zone": "a"}, 1), node(map[string]string{"example.com/rack": "r1"}, 2)}
	for expression, want := range map[string]bool{
		"nodes.all(n, n.labels['example.com/rack'] == nodes[0].labels['example.com/rack'])":                        true,
		"nodes.map(n, n.labels['example.com/rack']).distinct().size() == 2":                                        false,
		"nodes.exists_one(n, 'zone' in n.labels)":                                                                  true,
		"nodes.filter(n, has(n.labels.zone)).size() == 1":                                                          true,
		"nodes[0].labels.zone == 'a' && !has(nodes[1].labels.zone)":                                                true,
		"nodes.path(a, b, a.attributes['d'].x - b.attributes['d'].x in [1, -1])":                                   true,
		"nodes.all(n, n == n) && nodes[0] != nodes[1] && has(nodes[0].labels) && type(nodes[0]) == type(nodes[1])": true,
		"nodes.box(n, [n.attributes['d'].x], [2])":                                                                 true,
		"nodes.segments(2, n, n.labels['example.com/rack'])":                                                       true,
		"nodes.segments(2, n, n.attributes['d'].x)":                                                                false,
		"(nodes.segments(2, n, n.attributes['d'].x) ? 3 : 1) == 1":                                                 true,
	} {
		compiled, err := e.Compile(t.Context(), expression)
		require.NoError(t, err, expression)
		got, err := compiled.Satisfied(t.Context(), nodes, cel.NewBudget(1<<20))
		require.NoError(t, err, expression)
		require.Equal(t, want, got, expression)
	}
	for _, unknown := range []string{"devices.size() == 2", "nodes.all(n, n.driver == '')", "nodes.all(n, n.name == '')"} {
		_, err := e.Compile(t.Context(), unknown)
		require.Error(t, err, unknown)
	}
	compiled, err := e.Compile(t.Context(), "nodes.all(n, n.labels.zone == 'a')")
	require.NoError(t, err)
	_, err = compiled.Satisfied(t.Context(), nodes, cel.NewBudget(1<<20))
	require.ErrorContains(t, err, "no such key: zone")

	d, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	_, err = d.Compile(t.Context(), "devices.all(d, d.labels.zone == 'a')")
	require.ErrorContains(t, err, "undefined field 'labels'")
}

func TestReadSetsOfNodes(t *testing.T) {
	e, err := device.NewNodeEnvironment(cel.Config{})
	require.NoError(t, err)
	rack, attribute := device.AttributeName{Domain: "#labels", ID: "rack"}, device.AttributeName{Domain: "d", ID: "labels"}
	for expression, want := range map[string]device.AttributeName{
		"nodes.all(n, n.labels['rack'] == 'a')":              rack,
		"nodes.all(n, n.labels.rack == 'a')":                 rack,
		"nodes.all(n, 'rack' in n.labels)":                   rack,
		"nodes.all(n, has(n.labels.rack))":                   rack,
		"nodes.all(n, n.attributes['d'].labels[0] == 'a')":   attribute,
		"nodes.all(n, n.attributes['d'].labels.rack == 'a')": attribute,
	} {
		compiled, err := e.Compile(t.Context(), expression)
		require.NoError(t, err, expression)
		require.Equal(t, device.ReadSet{Attributes: map[device.AttributeName]bool{want: true}}, compiled.ReadSet(), expression)
	}
	for _, all := range []string{"nodes.all(n, n.labels.exists(k, k == 'rack'))", "nodes.all(n, n.labels == nodes[0].labels)", "nodes.all(n, n.labels[n.labels.rack] == 'a')",
		"nodes.all(n, n.?labels[?'rack'].hasValue())", "nodes.all(n, n.?attributes[?'d'].hasValue())"} {
		compiled, err := e.Compile(t.Context(), all)
		require.NoError(t, err, all)
		require.True(t, compiled.ReadSet().All, all)
	}
}
