// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cel"
)

// TestComputed checks the values of expressions over a device and its node, and the labels that they read.
func TestComputed(t *testing.T) {
	environment, err := NewComputedEnvironment(cel.Config{})
	require.NoError(t, err)
	chip := &resourceapi.Device{Name: "chip-5", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: new(int64(5))}}}
	input := NewComputedInput("chip.example.com", chip, NewComputedNode("node-a", map[string]string{"rack": "r7"}))
	text := func(value string) *resourceapi.DeviceAttribute {
		return &resourceapi.DeviceAttribute{StringValue: &value}
	}
	isTrue := &resourceapi.DeviceAttribute{BoolValue: new(true)}
	for expression, test := range map[string]struct {
		want   *resourceapi.DeviceAttribute
		labels []string
		all    bool
		// failure is a part of the message of a failed compilation or evaluation.
		failure string
	}{
		"device.attributes[device.driver].index % 4": {want: &resourceapi.DeviceAttribute{IntValue: new(int64(1))}},
		"device.name + node.name":                    {want: text("chip-5node-a")},
		"node.labels['rack']":                        {want: text("r7"), labels: []string{"rack"}},
		"node.labels[?'row']":                        {labels: []string{"row"}},
		"'rack' in node.labels && has(node.labels.rack) && node.labels[?'a'].orValue('b') == 'b'": {want: isTrue, labels: []string{"a", "rack"}},
		"node.labels.size() == 1":                          {want: isTrue, all: true},
		"node.labels[device.driver.substring(0, 0) + 'a']": {failure: "no such key: a", labels: nil, all: true},
		"has(node.name)":                                   {want: isTrue, all: true},
		"[device].exists(d, d == device) && device == device && has(device.name) && has(device.driver) && type(device) == type(device)": {want: isTrue},
		"semver('1.2.3')":                {want: &resourceapi.DeviceAttribute{VersionValue: new("1.2.3")}},
		"[semver('1.2.3')]":              {want: &resourceapi.DeviceAttribute{VersionValues: []string{"1.2.3"}}},
		"[1, 2]":                         {want: &resourceapi.DeviceAttribute{IntValues: []int64{1, 2}}},
		"[true]":                         {want: &resourceapi.DeviceAttribute{BoolValues: []bool{true}}},
		"['a']":                          {want: &resourceapi.DeviceAttribute{StringValues: []string{"a"}}},
		"optional.of([1])":               {want: &resourceapi.DeviceAttribute{IntValues: []int64{1}}},
		"[1].filter(i, false)":           {failure: "returned an empty list"},
		"[dyn(1), dyn('a')]":             {failure: "returned a list of other or of different types"},
		"[dyn(1.5)]":                     {failure: "returned a list of other or of different types"},
		"dyn(device)":                    {failure: "returned celset.NamedDevice"},
		"string(dyn(device))":            {failure: "no such overload"},
		"1.5":                            {failure: "but returns double"},
		"device":                         {failure: "but returns celset.NamedDevice"},
		"optional.of(1.5)":               {failure: "but returns optional_type(double)"},
		"device.attributes['a/b'].index": {failure: "no device can have the domain"},
		"devices.size()":                 {failure: "undeclared reference to 'devices'"},
	} {
		t.Run(expression, func(t *testing.T) {
			computed, err := environment.Compile(t.Context(), expression)
			if err != nil {
				require.NotEmpty(t, test.failure)
				require.ErrorContains(t, err, test.failure)
				return
			}
			labels, all := computed.Labels()
			require.Equal(t, test.all, all)
			require.ElementsMatch(t, test.labels, labels)
			got, err := computed.Evaluate(t.Context(), input, nil)
			if test.failure != "" {
				require.ErrorContains(t, err, test.failure)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
	require.Nil(t, input.Parent())
	_, known := input.ResolveName("devices")
	require.False(t, known)
	named := namedDevice{New("chip.example.com", chip), "chip-5"}
	require.Equal(t, named, named.Value())
	require.ErrorContains(t, named.ConvertToType(types.StringType).(*types.Err), "type conversion error")
}
