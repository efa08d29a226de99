// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

const driver = "mla.example.com"

// attributes maps attribute names to Go values: int, bool, string, version and slices of these. A value may also be a
// resourceapi.DeviceAttribute.
type attributes map[resourceapi.QualifiedName]any

type version string

func (a attributes) api() map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	result := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, len(a))
	for name, value := range a {
		result[name] = attribute(value)
	}
	return result
}

func attribute(value any) resourceapi.DeviceAttribute {
	switch value := value.(type) {
	case int:
		return resourceapi.DeviceAttribute{IntValue: ptr.To(int64(value))}
	case bool:
		return resourceapi.DeviceAttribute{BoolValue: &value}
	case string:
		return resourceapi.DeviceAttribute{StringValue: &value}
	case version:
		return resourceapi.DeviceAttribute{VersionValue: ptr.To(string(value))}
	case []int64:
		return resourceapi.DeviceAttribute{IntValues: value}
	case []bool:
		return resourceapi.DeviceAttribute{BoolValues: value}
	case []string:
		return resourceapi.DeviceAttribute{StringValues: value}
	case []version:
		result := resourceapi.DeviceAttribute{}
		for _, text := range value {
			result.VersionValues = append(result.VersionValues, string(text))
		}
		return result
	case resourceapi.DeviceAttribute:
		return value
	default:
		panic(fmt.Sprintf("the fixture has no attributes of type %T", value))
	}
}

func newDevice(a attributes) *device.Device {
	return device.New(driver, &resourceapi.Device{Attributes: a.api()})
}

// withCapacity returns a device with the single capacity "memory".
func withCapacity(memory string) *device.Device {
	return device.New(driver, &resourceapi.Device{Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"memory": {Value: resource.MustParse(memory)},
	}})
}

// ring returns n devices whose attribute index counts from 0.
func ring(n int) []*device.Device {
	devices := make([]*device.Device, n)
	for i := range devices {
		devices[i] = newDevice(attributes{"index": i})
	}
	return devices
}

// mesh returns the devices of a rectangle, row by row.
func mesh(rows, cols int) []*device.Device {
	var devices []*device.Device
	for row := range rows {
		for col := range cols {
			devices = append(devices, newDevice(attributes{"row": row, "col": col}))
		}
	}
	return devices
}

func pick(devices []*device.Device, indices ...int) []*device.Device {
	var result []*device.Device
	for _, i := range indices {
		result = append(result, devices[i])
	}
	return result
}

// environment is shared by all tests, because creating an environment takes many milliseconds.
var environment = func() *device.Environment {
	result, err := device.NewEnvironment(cel.Config{})
	if err != nil {
		panic(err)
	}
	return result
}()

func compile(t testing.TB, expression string) *device.Expression {
	t.Helper()
	result, err := environment.Compile(t.Context(), expression)
	require.NoError(t, err)
	return result
}

func satisfied(t testing.TB, expression string, devices ...*device.Device) (bool, error) {
	t.Helper()
	return compile(t, expression).Satisfied(context.Background(), devices, nil)
}

func requireTrue(t testing.TB, expression string, devices ...*device.Device) {
	t.Helper()
	verdict, err := satisfied(t, expression, devices...)
	require.NoError(t, err, expression)
	require.True(t, verdict, expression)
}

func requireFalse(t testing.TB, expression string, devices ...*device.Device) {
	t.Helper()
	verdict, err := satisfied(t, expression, devices...)
	require.NoError(t, err, expression)
	require.False(t, verdict, expression)
}

// requireRuntimeError requires that the expression fails with the message on the devices, and returns the error.
func requireRuntimeError(t testing.TB, message, expression string, devices ...*device.Device) *cel.Error {
	t.Helper()
	verdict, err := satisfied(t, expression, devices...)
	require.False(t, verdict)
	var failure *cel.Error
	require.ErrorAs(t, err, &failure, expression)
	require.Equal(t, cel.ReasonRuntime, failure.Reason)
	require.Contains(t, failure.Message, message)
	return failure
}
