// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// numaNodes makes four GPUs that tell their PCI domain and eight ports that tell their NUMA
// node: no attribute is of both.
func numaNodes() (gpus, ports *sliceBuilder) {
	var ofGPUs, ofPorts []resourceapi.Device
	for i, domain := range []string{"0008", "0009", "0018", "0019"} {
		ofGPUs = append(ofGPUs, newDevice(fmt.Sprintf("gpu-%d", i), attrs{"resource.kubernetes.io/pcieRoot": "pci" + domain + ":00"}))
	}
	for i := range 8 {
		ofPorts = append(ofPorts, newDevice(fmt.Sprintf("port-%d", i), attrs{"numaNode": i / 4}))
	}
	return slice("gpus", ofGPUs...).driver("gpu.nvidia.com"), slice("ports", ofPorts...).driver("dra.net")
}

func variable(name, expression string) v1alpha1.Variable {
	return v1alpha1.Variable{Name: name, Expression: expression}
}

// TestVariablesAreColumns: what variables say of devices is found out once for each, and the
// search reads it like an attribute.
func TestVariablesAreColumns(t *testing.T) {
	gpus, ports := numaNodes()
	wanted := claim("c").want("gpu", 2).class("gpu.nvidia.com").want("port", 4).class("dra.net").cel("near").
		define("near", "devices.all(a, devices.all(b, a.variables.numa == b.variables.numa))", variable("numa",
			`device.driver == 'dra.net' ? device.attributes['dra.net'].numaNode :
			device.attributes['resource.kubernetes.io'].pcieRoot.startsWith('pci000') ? 0 : 1`))
	classes := []*resourceapi.DeviceClass{
		classOf("gpu.nvidia.com", "device.driver == 'gpu.nvidia.com'"),
		classOf("dra.net", "device.driver == 'dra.net'"),
	}
	s := scenario{classes: classes, slices: []*sliceBuilder{gpus, ports}, claims: []*claimBuilder{wanted}}
	s.requireDevices(t, "gpu=gpu-0", "gpu=gpu-1", "port=port-0", "port=port-1", "port=port-2", "port=port-3")

	// With fewer ports at the first NUMA node it is the other one.
	ports.Spec.Devices = ports.Spec.Devices[1:]
	a := s.allocator(t)
	results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
	require.NoError(t, err)
	require.Equal(t, []string{"gpu=gpu-2", "gpu=gpu-3", "port=port-4", "port=port-5", "port=port-6", "port=port-7"}, devicesOf(results))
	require.Zero(t, a.Stats().Evaluations)
	require.LessOrEqual(t, a.Stats().Steps, int64(12))
}

// TestVariablesArePartOfTheKey: with one cache, claims that differ in a variable alone get
// answers of their own.
func TestVariablesArePartOfTheKey(t *testing.T) {
	cache := NewCache()
	for want, expression := range map[string]string{
		"r=mla-3": "device.attributes['mla.example.com'].index == 3",
		"r=mla-5": "device.attributes['mla.example.com'].index == 5",
	} {
		scenario{
			classes: []*resourceapi.DeviceClass{classOf(driver)},
			slices:  []*sliceBuilder{slice("ring", ring(8)...)},
			claims:  []*claimBuilder{claim("c").want("r", 1).cel("a").define("a", "devices.all(d, d.variables.it)", variable("it", expression))},
			opts:    []Option{WithCache(cache)},
		}.requireDevices(t, want)
	}
}

func TestErrorsInVariables(t *testing.T) {
	s := scenario{
		classes: []*resourceapi.DeviceClass{classOf(driver)},
		slices:  []*sliceBuilder{slice("ring", ring(8)...)},
		claims:  []*claimBuilder{claim("c").want("r", 2).cel("a").define("a", "devices.all(d, d.variables.row == 1)", variable("row", "device.attributes['mla.example.com'].row"))},
	}
	s.requireError(t, "no such key: row")
	s.claims[0].Spec.Devices.Config = nil
	s.claims[0].define("a", "true", variable("row", "device.attributes["))
	s.requireError(t, "claim default/c, constraint a (ResourceClaim default/c spec.devices.config[0]): variable row: ERROR: <input>:1:19: Syntax error")
}
