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

func TestPodsOfNodes(t *testing.T) {
	e, err := device.NewNodeEnvironment(cel.Config{})
	require.NoError(t, err)
	with := func(pods ...device.OfPod) *device.Device {
		value, err := device.NodePodsOf(pods)
		require.NoError(t, err)
		return device.New(device.NodeDriver, &resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			device.NodePods: value, device.NodeLabel("rack"): {StringValue: ptr.To("r")},
		}})
	}
	role := func(role string, index int64) device.OfPod {
		return device.OfPod{Labels: map[string]string{"role": role}, Index: &index}
	}
	nodes := []*device.Device{with(role("a", 3)), with(device.OfPod{}), with(role("b", 1), role("a", 2)), with()}
	for expression, want := range map[string]any{
		"nodes[0].pod.labels['role'] == 'a' && nodes[0].pod.labels.role == 'a' && nodes[0].pod.index == 3":   true,
		"has(nodes[0].pod.index) && !has(nodes[1].pod.index) && has(nodes[1].pod.labels)":                    true,
		"'role' in nodes[0].pod.labels && !('role' in nodes[1].pod.labels) && has(nodes[0].pod.labels.role)": true,
		"nodes.map(n, n.pods.size()) == [1, 1, 2, 0]":                                                        true,
		"nodes[2].pods.map(p, p.labels.role) == ['a', 'b'] && nodes[2].pods.map(p, p.index).sum() == 3":      true,
		"nodes.filter(n, n.pods.exists(p, 'role' in p.labels && p.labels['role'] == 'a')).size() == 2":       true,
		"nodes[0].pods[0] == nodes[0].pod && nodes[0].pod != nodes[1].pod && nodes[0].labels['rack'] == 'r'": true,
		"nodes[0].attributes.size() == 0": true,
		"nodes[1].pod.index == 0":         "no such key: index",
		"nodes[2].pod.index == 0":         "this node has 2 pods of the group: use n.pods",
		"nodes[3].pod.index == 0":         "this node has 0 pods of the group: use n.pods",
		"nodes[1].pod.labels.role == 'a'": "no such key: role",
	} {
		compiled, err := e.Compile(t.Context(), expression)
		require.NoError(t, err, expression)
		got, err := compiled.Satisfied(t.Context(), nodes, cel.NewBudget(1<<20))
		if message, fails := want.(string); fails {
			require.ErrorContains(t, err, message, expression)
			continue
		}
		require.NoError(t, err, expression)
		require.Equal(t, want, got, expression)
	}
	for _, unknown := range []string{"nodes.all(n, n.pod.name == '')", "nodes.all(n, n.index == 0)", "nodes.all(n, n.pod.attributes.size() == 0)"} {
		_, err := e.Compile(t.Context(), unknown)
		require.ErrorContains(t, err, "undefined field", unknown)
	}
	_, err = device.NodePodsOf(make([]device.OfPod, 257))
	require.ErrorContains(t, err, "the limit for n.pods is 256")
}

func TestReadSetsOfPods(t *testing.T) {
	e, err := device.NewNodeEnvironment(cel.Config{})
	require.NoError(t, err)
	role := map[string]bool{"role": true}
	for expression, want := range map[string]device.Pods{
		"nodes.all(n, n.labels['role'] == 'a')":                            {},
		"nodes.all(n, n.attributes['d'].pods == 1)":                        {},
		"nodes.all(n, n.pods.size() == 1)":                                 {Any: true},
		"nodes.all(n, n.pod.labels['role'] == 'a')":                        {Any: true, Only: true, Labels: role},
		"nodes.all(n, has(n.pod.labels.role))":                             {Any: true, Only: true, Labels: role},
		"nodes.all(n, 'role' in n.pods[0].labels)":                         {Any: true, Labels: role},
		"nodes.all(n, n.pods.all(p, p.labels.role == 'a'))":                {Any: true, Labels: role},
		"nodes.all(n, n.pods.all(p, p.index == 1))":                        {Any: true, Index: true},
		"nodes.all(n, has(n.pod.index))":                                   {Any: true, Only: true, Index: true},
		"nodes.all(n, n.?pod.?index.hasValue())":                           {Any: true, Only: true, Index: true},
		"nodes.all(n, n.pod.labels.exists(k, k == 'a'))":                   {Any: true, Only: true, AllLabels: true},
		"nodes.all(n, n.pod.labels == nodes[0].pod.labels)":                {Any: true, Only: true, AllLabels: true},
		"nodes.all(n, n.pod.labels[n.labels['a']] == 'b')":                 {Any: true, Only: true, AllLabels: true},
		"nodes.map(n, n.pod).all(p, p.labels.role == 'a' && p.index == 1)": {Any: true, Only: true, Labels: role, Index: true},
		"nodes.all(n, [dyn(n), dyn(n.pod)].all(x, x.labels.role == 'a'))":  {Any: true, Only: true, Labels: role},
		"nodes.all(n, [dyn(n.pod)].all(x, x.index == 1))":                  {Any: true, Only: true, Index: true},
	} {
		compiled, err := e.Compile(t.Context(), expression)
		require.NoError(t, err, expression)
		if want.Labels == nil {
			want.Labels = map[string]bool{}
		}
		require.Equal(t, want, compiled.ReadSet().Pods(), expression)
	}
	compiled, err := e.Compile(t.Context(), "nodes.all(n, n.pod.labels['rack'] == 'a')")
	require.NoError(t, err)
	require.False(t, compiled.ReadSet().All)
	require.NotContains(t, compiled.ReadSet().Attributes, device.AttributeName{Domain: "#labels", ID: "rack"})
}
