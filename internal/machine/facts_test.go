// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/machine"
)

// The tests in this file check the difficult properties of the models (see the package comment), and computed values.

const (
	pcieRoot = "resource.kubernetes.io/pcieRoot"
	numaNode = "resource.kubernetes.io/numaNode"
)

// value returns the value of an attribute without its type, or nil.
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

func numbered(format string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf(format, i))
	}
	return names
}

// TestRacks checks that consecutive nodes are in the same rack, as many as the rack has trays.
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

// TestRailAddresses checks that nodes with a number in their name have different addresses in one network, and that all other
// nodes have an address, too.
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

// TestNothingInCommon checks a machine where no attribute has the same value for a GPU and a NIC.
func TestNothingInCommon(t *testing.T) {
	for _, name := range []string{"oci-gb200", "azure-gb300"} {
		for _, gpu := range devicesOf(t, name, "gpu.nvidia.com") {
			for _, nic := range devicesOf(t, name, "dra.net") {
				for attribute := range gpu.Attributes {
					require.NotEqual(t, value(gpu, attribute), value(nic, attribute), attribute)
				}
			}
		}
	}
}
