// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	cdispec "tags.cncf.io/container-device-interface/specs-go"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/internal/topology/machine"
	"github.com/celset/celset/internal/topologydriver/cdi"
)

func machineNamed(t *testing.T, name string) topology.Topology {
	t.Helper()
	m, err := machine.ByName(name)
	require.NoError(t, err)
	return m.Topology(node)
}

// claimOf is a claim that was given these.
func claimOf(name string, results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	claim := allocatedClaim(name)
	claim.Status.Allocation.Devices.Results = results
	return claim
}

// told is what a container reads that has all devices of a claim, by variable.
func (f *fixture) told(t *testing.T, driver string, claim types.UID) map[string]cdi.Told {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(f.options.CDIDir, driver+"-device_"+string(claim)+".json"))
	require.NoError(t, err)
	var spec cdispec.Spec
	require.NoError(t, json.Unmarshal(content, &spec))
	result := map[string]cdi.Told{}
	for _, device := range spec.Devices {
		for _, pair := range device.ContainerEdits.Env {
			variable, value, _ := strings.Cut(pair, "=")
			result[variable], err = cdi.Parse(value)
			require.NoError(t, err)
		}
	}
	return result
}

// TestPrepareMachines: whatever attributes and capacities the devices of a machine have or
// lack, containers are told of all.
func TestPrepareMachines(t *testing.T) {
	for _, m := range machine.All() {
		f := newFixture(t, m.Topology(node))
		for i, name := range m.Drivers() {
			d, err := f.options.newDriver(name, func(error) {})
			require.NoError(t, err)
			claim := claimOf(fmt.Sprint(m.Name, i))
			devices := devicesOf(f.options.Topology, name)
			for device := range devices {
				claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
					resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: name, Pool: node, Device: device})
			}
			_, err = prepareOne(t, d, claim)
			require.NoError(t, err)
			told := f.told(t, name, claim.UID)
			require.Len(t, told, len(devices))
			for _, one := range told {
				require.Len(t, one.Attributes, len(devices[one.Device].Attributes))
				require.Len(t, one.Capacity, len(devices[one.Device].Capacity))
			}
		}
	}
}

func TestWhatIsToldOfMachines(t *testing.T) {
	f := newFixture(t, machineNamed(t, "hgx-h100-cpu"))
	gpus, err := f.options.newDriver("gpu.nvidia.com", func(error) {})
	require.NoError(t, err)
	claim := claimOf("gpu", resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: "gpu.nvidia.com", Pool: node, Device: "gpu-0"})
	_, err = prepareOne(t, gpus, claim)
	require.NoError(t, err)
	gpu := f.told(t, "gpu.nvidia.com", claim.UID)["CELSET_DEVICE_GPU_NVIDIA_COM__GPU_0"]
	require.Equal(t, "NVIDIA H100 80GB HBM3", gpu.Attributes["productName"])
	require.Equal(t, map[string]string{"memory": "81559Mi"}, gpu.Capacity)

	cpus, err := f.options.newDriver("dra.cpu", func(error) {})
	require.NoError(t, err)
	claim = claimOf("cpu", cpuShare("share-1", "4"))
	_, err = prepareOne(t, cpus, claim)
	require.NoError(t, err)
	cpu := f.told(t, "dra.cpu", claim.UID)["CELSET_DEVICE_DRA_CPU__CPUDEVNUMA000__SHARE_1"]
	require.Equal(t, map[string]string{"dra.cpu/cpu": "4"}, cpu.Capacity, "what the claim has")
	require.Equal(t, "share-1", cpu.Share)
	require.Equal(t, "pci0000:a0,pci0000:aa,pci0000:b4,pci0000:be", cpu.Attributes["resource.kubernetes.io/pcieRoot"])
}

func cpuShare(share types.UID, cpus string) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{
		Request: "r", Driver: "dra.cpu", Pool: node, Device: "cpudevnuma000", ShareID: ptr.To(share),
		ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"dra.cpu/cpu": resource.MustParse(cpus)},
	}
}

// TestMachineIsServed: each driver of a machine has its sockets and its pool.
func TestMachineIsServed(t *testing.T) {
	f := newFixture(t, machineNamed(t, "hgx-h100-cpu"))
	drivers := f.start(t)
	require.Len(t, drivers.all, 4)
	for _, d := range drivers.all {
		published, err := resources(f.options.Topology, d.name, node)
		require.NoError(t, err)
		require.Len(t, published.Pools, 1)
		require.NotEmpty(t, published.Pools[node].Slices)
	}
	for _, d := range drivers.all {
		newKubelet(t, d).register(t, true)
	}
}

// TestShares: a device that is shared is not allocated twice, but a share may be.
func TestShares(t *testing.T) {
	f := newFixture(t, machineNamed(t, "cpu-numa"))
	d := f.driver(t)
	first := claimOf("a", cpuShare("share-1", "4"), cpuShare("share-2", "8"))
	for range 2 {
		devices, err := prepareOne(t, d, first)
		require.NoError(t, err)
		require.Len(t, devices, 2)
		require.Equal(t, types.UID("share-2"), *devices[1].ShareID)
		require.Len(t, f.told(t, "dra.cpu", first.UID), 2)
	}
	_, err := prepareOne(t, d, claimOf("b", cpuShare("share-3", "4")))
	require.NoError(t, err)
	_, err = prepareOne(t, d, claimOf("c", cpuShare("share-2", "8")))
	require.ErrorContains(t, err, "double allocation: device cpudevnuma000")
	require.NoError(t, unprepareOne(t, d, first))
	_, err = prepareOne(t, d, claimOf("c", cpuShare("share-2", "8")))
	require.NoError(t, err)
}
