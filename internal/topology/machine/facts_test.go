// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/topology/machine"
)

// The tests of this file say what of the real machines the models must keep.

const (
	pcieRoot = "resource.kubernetes.io/pcieRoot"
	numaNode = "resource.kubernetes.io/numaNode"
)

// value is that of an attribute without its type, nil if there is none.
func value(d resourceapi.Device, name resourceapi.QualifiedName) any {
	switch a := d.Attributes[name]; {
	case a.StringValue != nil:
		return *a.StringValue
	case a.IntValue != nil:
		return int(*a.IntValue)
	case a.BoolValue != nil:
		return *a.BoolValue
	case a.VersionValue != nil:
		return *a.VersionValue
	case a.StringValues != nil:
		return a.StringValues
	default:
		return nil
	}
}

// values are those of all devices, in order.
func values(devices []resourceapi.Device, name resourceapi.QualifiedName) []any {
	var result []any
	for _, d := range devices {
		result = append(result, value(d, name))
	}
	return result
}

// having are the devices of which an attribute has a value.
func having(devices []resourceapi.Device, name resourceapi.QualifiedName, wanted any) []resourceapi.Device {
	return slices.DeleteFunc(slices.Clone(devices), func(d resourceapi.Device) bool { return value(d, name) != wanted })
}

func named(devices []resourceapi.Device) []string {
	var names []string
	for _, d := range devices {
		names = append(names, d.Name)
	}
	return names
}

func numbered(format string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf(format, i))
	}
	return names
}

func TestP4d(t *testing.T) {
	gpus, nics := devicesOf(t, "aws-p4d", "gpu.nvidia.com"), devicesOf(t, "aws-p4d", "dra.net")
	require.Equal(t, numbered("gpu-%d", 8), named(gpus))
	roots := []any{"pci0000:10", "pci0000:20", "pci0000:90", "pci0000:a0"}
	require.Equal(t, []any{roots[0], roots[0], roots[1], roots[1], roots[2], roots[2], roots[3], roots[3]}, values(gpus, pcieRoot))
	require.NotContains(t, values(gpus, "resource.kubernetes.io/pciBusID"), nil)
	efas, enas := having(nics, "dra.net/rdma", true), having(nics, "dra.net/rdma", false)
	require.Equal(t, roots, values(efas, pcieRoot))
	require.Equal(t, []any{0, 0, 1, 1}, values(efas, "dra.net/numaNode"))
	require.Len(t, enas, 3)
	require.Subset(t, roots, values(enas, pcieRoot))
	require.Len(t, nics, 7)
}

func TestTrn1(t *testing.T) {
	neurons, nics := devicesOf(t, "aws-trn1", "neuron.aws.com"), devicesOf(t, "aws-trn1", "dra.net")
	require.ElementsMatch(t, numbered("neuron-device-%d", 16), named(neurons))
	require.False(t, slices.Equal(numbered("neuron-device-%d", 16), named(neurons)), "they are in no order")
	for size, group := range map[int]resourceapi.QualifiedName{
		2: "resource.aws.com/devicegroup1_id", 4: "resource.aws.com/devicegroup4_id",
		8: "resource.aws.com/devicegroup8_id", 16: "resource.aws.com/devicegroup16_id",
	} {
		members := map[any][]int{}
		for _, d := range neurons {
			members[value(d, group)] = append(members[value(d, group)], value(d, "deviceId").(int))
		}
		require.Len(t, members, 16/size, group)
		for _, ids := range members {
			require.Len(t, ids, size)
			require.Zero(t, slices.Min(ids)%size)
			require.Equal(t, slices.Min(ids)+size-1, slices.Max(ids), "aligned stretches")
		}
	}
	for _, d := range neurons {
		x, y := value(d, "topology_x").(int), value(d, "topology_y").(int)
		require.True(t, x >= 0 && x < 4 && y >= 0 && y < 4)
		require.Equal(t, 4*x+y, value(d, "deviceId"))
		require.Equal(t, fmt.Sprintf("neuron-device-%d", 4*x+y), d.Name)
		require.Nil(t, value(d, "x"))
	}
	efas := having(nics, "dra.net/rdma", true)
	require.Len(t, efas, 8)
	require.Len(t, nics, 9)
	for _, efa := range efas {
		group := value(efa, "resource.aws.com/devicegroup1_id")
		require.NotNil(t, group)
		require.Len(t, having(neurons, "resource.aws.com/devicegroup1_id", group), 2)
		require.Len(t, having(efas, "resource.aws.com/devicegroup1_id", group), 1)
	}
}

// TestTrn1Torus: links are those of the torus that the attributes tell.
func TestTrn1Torus(t *testing.T) {
	m, err := machine.ByName("aws-trn1")
	require.NoError(t, err)
	topo := m.Topology("node-1")
	require.Len(t, topo.Edges(), 32)
	require.True(t, topo.Adjacent("neuron-device-0", "neuron-device-3"), "columns close")
	require.True(t, topo.Adjacent("neuron-device-0", "neuron-device-12"), "rows close")
	require.True(t, topo.Adjacent("neuron-device-5", "neuron-device-9"))
	require.False(t, topo.Adjacent("neuron-device-3", "neuron-device-4"))
	require.True(t, topo.Connected([]string{"neuron-device-0", "neuron-device-3", "neuron-device-12", "neuron-device-15"}))
}

var blackwellRoots = []any{"pci0008:00", "pci0009:00", "pci0018:00", "pci0019:00"}

func TestGB200(t *testing.T) {
	gpus, nics := devicesOf(t, "oci-gb200", "gpu.nvidia.com"), devicesOf(t, "oci-gb200", "dra.net")
	require.Equal(t, numbered("gpu-%d", 4), named(gpus))
	require.Equal(t, blackwellRoots, values(gpus, pcieRoot))
	require.Equal(t, "0008:06:00.0", value(gpus[0], "resource.kubernetes.io/pciBusID"))
	require.Equal(t, []any{nil, nil, nil, nil}, values(gpus, numaNode))
	require.Equal(t, []any{0, 0, 0, 0, 1, 1, 1, 1}, values(nics, "dra.net/numaNode"))
	require.Equal(t, []any{
		"0000:03:00.0", "0000:03:00.1", "0002:03:00.0", "0002:03:00.1",
		"0010:03:00.0", "0010:03:00.1", "0012:03:00.0", "0012:03:00.1",
	}, values(nics, "dra.net/pciAddress"))
	require.Len(t, having(nics, "dra.net/rdma", true), 8)
	for _, name := range []resourceapi.QualifiedName{"rackId", "networkBlockId", "localBlockId", "hpcIslandId", "gpuMemoryFabricId"} {
		require.NotNil(t, value(nics[7], "oke.dra.net/"+name))
	}
	requireNothingInCommon(t, gpus, nics)
}

func TestGB300(t *testing.T) {
	gpus, nics := devicesOf(t, "azure-gb300", "gpu.nvidia.com"), devicesOf(t, "azure-gb300", "dra.net")
	require.Equal(t, blackwellRoots, values(gpus, pcieRoot))
	require.Equal(t, []any{0, 0, 1, 1}, values(nics, "dra.net/numaNode"))
	require.Equal(t, []any{nil, nil, nil, nil}, values(nics, pcieRoot))
	require.NotContains(t, values(nics, "azure.dra.net/placementGroupId"), nil)
	require.Len(t, having(nics, "dra.net/rdma", true), 4)
	requireNothingInCommon(t, gpus, nics)
}

// requireNothingInCommon: no attribute has the same value for a GPU and a NIC.
func requireNothingInCommon(t *testing.T, gpus, nics []resourceapi.Device) {
	t.Helper()
	for _, gpu := range gpus {
		for name := range gpu.Attributes {
			require.Empty(t, having(nics, name, value(gpu, name)), name)
		}
	}
}

// TestRacks: nodes that follow each other are in one rack, as many as it has trays.
func TestRacks(t *testing.T) {
	m, err := machine.ByName("oci-gb200")
	require.NoError(t, err)
	rackOf := func(node int) string {
		nic, found := m.Topology(fmt.Sprintf("node-%d", node)).Device("pci-0000-03-00-0")
		require.True(t, found)
		return *nic.Attributes["oke.dra.net/rackId"].StringValue
	}
	require.Equal(t, rackOf(0), rackOf(17))
	require.NotEqual(t, rackOf(17), rackOf(18))
}

func TestMI300X(t *testing.T) {
	gpus, nics := devicesOf(t, "azure-mi300x", "gpu.amd.com"), devicesOf(t, "azure-mi300x", "dra.net")
	require.Len(t, gpus, 8)
	for _, gpu := range gpus {
		require.Regexp(t, `^gpu-\d+-\d+$`, gpu.Name)
		require.Equal(t, "spx_nps1", value(gpu, "partitionProfile"))
		require.NotNil(t, value(gpu, pcieRoot))
		memory := gpu.Capacity["memory"].Value
		require.Equal(t, "196592Mi", memory.String())
		require.Contains(t, gpu.Capacity, resourceapi.QualifiedName("computeUnits"))
	}
	require.Equal(t, []any{0, 0, 0, 0, 1, 1, 1, 1}, values(nics, "dra.net/numaNode"))
}

func TestH100(t *testing.T) {
	gpus, nics := devicesOf(t, "hgx-h100", "gpu.nvidia.com"), devicesOf(t, "hgx-h100", "dra.net")
	require.ElementsMatch(t, numbered("gpu-%d", 8), named(gpus))
	require.False(t, slices.Equal(numbered("gpu-%d", 8), named(gpus)), "they are in no order")
	roots := []any{"pci0000:a0", "pci0000:aa", "pci0000:b4", "pci0000:be", "pci0000:c8", "pci0000:d2", "pci0000:dc", "pci0000:e6"}
	require.ElementsMatch(t, roots, values(gpus, pcieRoot))
	for _, gpu := range gpus {
		for name := range gpu.Attributes {
			require.NotContains(t, strings.ToLower(string(name)), "numa")
		}
	}
	rails := having(nics, "dra.net/rdma", true)
	require.ElementsMatch(t, roots, values(rails, pcieRoot))
	for _, rail := range rails {
		i := slices.Index(roots, value(rail, pcieRoot))
		require.Equal(t, i/4, value(rail, "dra.net/numaNode"))
		require.Equal(t, fmt.Sprintf("10.%d.0.2/16", i), value(rail, "dra.net/ipv4"))
	}
	noise := having(nics, "dra.net/rdma", false)
	require.Len(t, nics, len(rails)+len(noise))
	require.Subset(t, named(noise), []string{"br-int", "ovs-system", "ovn-k8s-mp0"})
	require.Contains(t, values(noise, "dra.net/ifName"), "ens3")
	require.Contains(t, values(noise, "dra.net/type"), "geneve")
	require.Len(t, having(noise, pcieRoot, nil), 4)
	require.Len(t, having(noise, "dra.net/numaNode", nil), 4)
	require.Equal(t, []string{"channel-0", "daemon-0"}, named(devicesOf(t, "hgx-h100", "compute-domain.nvidia.com")))
}

// TestRailAddresses: nodes that are numbered have different addresses in one network, and
// others have some.
func TestRailAddresses(t *testing.T) {
	m, err := machine.ByName("hgx-h100")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, node := range append(numbered("node-%d", 600), "control", "n99999999999999999999") {
		for _, d := range m.Topology(node).Devices {
			if address := d.Attributes["dra.net/ipv4"].StringValue; address != nil {
				require.False(t, seen[*address], *address)
				seen[*address] = true
				require.Regexp(t, `^(10\.[0-7]|172\.16)\.\d+\.\d+/16$`, *address)
			}
		}
	}
}

func TestCPUsByNUMANode(t *testing.T) {
	for _, name := range []string{"cpu-numa", "hgx-h100-cpu"} {
		cpus := devicesOf(t, name, "dra.cpu")
		require.Equal(t, []any{0, 1}, values(cpus, numaNode))
		for i, cpu := range cpus {
			require.True(t, *cpu.AllowMultipleAllocations)
			count := cpu.Capacity["dra.cpu/cpu"].Value
			require.Equal(t, "64", count.String())
			require.Equal(t, i, value(cpu, "dra.cpu/socketID"))
			require.Len(t, value(cpu, pcieRoot), 4, "a list")
		}
	}
	gpu := devicesOf(t, "hgx-h100-cpu", "gpu.nvidia.com")[0]
	cpus := devicesOf(t, "hgx-h100-cpu", "dra.cpu")
	require.True(t, slices.ContainsFunc(cpus, func(cpu resourceapi.Device) bool {
		return slices.Contains(value(cpu, pcieRoot).([]string), value(gpu, pcieRoot).(string))
	}), "its list has what others have as one value")
}

func TestEachCPU(t *testing.T) {
	cpus := devicesOf(t, "cpu-each", "dra.cpu")
	require.Len(t, cpus, 128)
	perCache := map[any]int{}
	seen := map[any]bool{}
	for _, cpu := range cpus {
		require.Nil(t, cpu.AllowMultipleAllocations)
		require.IsType(t, []string{}, value(cpu, pcieRoot))
		require.NotNil(t, value(cpu, "dra.cpu/coreID"))
		require.Equal(t, value(cpu, numaNode), value(cpu, "dra.cpu/socketID"))
		perCache[value(cpu, "dra.cpu/cacheL3ID")]++
		require.False(t, seen[value(cpu, "dra.cpu/cpuID")])
		seen[value(cpu, "dra.cpu/cpuID")] = true
	}
	require.Len(t, perCache, 8)
	require.Equal(t, 16, perCache[0])
}

func TestIntel(t *testing.T) {
	for name, driver := range map[string]string{"intel-gaudi2": "gaudi.intel.com", "intel-gpu": "gpu.intel.com"} {
		for _, d := range devicesOf(t, name, driver) {
			root, own := value(d, pcieRoot).(string), value(d, "pciRoot").(string)
			require.True(t, strings.HasSuffix(root, ":"+own))
			require.Regexp(t, `^0000:[0-9a-f]{2}:00\.0$`, value(d, "pciAddress"))
		}
	}
	require.Len(t, devicesOf(t, "intel-gaudi2", "gaudi.intel.com"), 8)
}

func TestExampleGPU(t *testing.T) {
	gpus := devicesOf(t, "example-gpu", "gpu.example.com")
	require.Equal(t, numbered("gpu-%d", 8), named(gpus))
	require.Equal(t, []any{0, 1, 2, 3, 4, 5, 6, 7}, values(gpus, "index"))
	require.NotContains(t, values(gpus, "model"), nil)
	memory := gpus[0].Capacity["memory"].Value
	require.Equal(t, "80Gi", memory.String())
}

func TestWithoutCoordinates(t *testing.T) {
	tpus, boards := devicesOf(t, "google-tpu", "tpu.google.com"), devicesOf(t, "tenstorrent", "tenstorrent.com")
	require.NotContains(t, values(tpus, "index"), nil)
	require.NotContains(t, values(tpus, "tpuGen"), nil)
	require.NotContains(t, values(boards, "chipCount"), nil)
	require.NotContains(t, values(boards, "trayID"), nil)
	for _, d := range append(tpus, boards...) {
		for _, name := range []resourceapi.QualifiedName{"x", "y", "row", "col", "topology_x", pcieRoot, numaNode} {
			require.Nil(t, value(d, name))
		}
	}
}

// TestSharedDevicesSayNothingElse: devices for one claim have no field for sharing at all.
func TestSharedDevicesSayNothingElse(t *testing.T) {
	shared := 0
	for _, m := range machine.All() {
		for _, d := range m.Topology("node-1").Devices {
			if d.AllowMultipleAllocations {
				shared++
				require.NotEmpty(t, d.Capacity)
			}
			for _, capacity := range d.Capacity {
				require.True(t, d.AllowMultipleAllocations || capacity.RequestPolicy == nil)
			}
		}
	}
	require.Equal(t, 4, shared)
}
