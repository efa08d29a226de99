// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
)

type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

func textValue(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}

func intValue(value int64) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: &value}
}

func TestLocate(t *testing.T) {
	const root, numa, dranet = "resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode", "dra.net/numaNode"
	at := func(source topology.Source, node int64, roots ...string) topology.Location {
		return topology.Location{Source: source, NUMANode: node, Roots: roots}
	}
	for name, test := range map[string]struct {
		devices []attributes
		want    []topology.Location
	}{
		"nothing": {[]attributes{nil}, []topology.Location{at(topology.Unknown, 0)}},
		"each way to say it": {
			[]attributes{{numa: intValue(1)}, {dranet: intValue(2)}, {"numaNode": intValue(3)}, {"d.test/numaNode": intValue(4)}, {numa: {IntValues: []int64{5}}}},
			[]topology.Location{at(topology.Published, 1), at(topology.Published, 2), at(topology.Published, 3), at(topology.Published, 4), at(topology.Published, 5)},
		},
		"on several, or on none": {
			[]attributes{{numa: {IntValues: []int64{0, 1}}}, {numa: intValue(-1)}, {numa: textValue("0")}},
			[]topology.Location{at(topology.Unknown, 0), at(topology.Unknown, 0), at(topology.Unknown, 0)},
		},
		"by root": {
			[]attributes{{root: textValue("pci0000:a0")}, {root: textValue("pci0000:a0"), dranet: intValue(1)}, {root: textValue("pci0000:b0")}},
			[]topology.Location{at(topology.ByRoot, 1, "pci0000:a0"), at(topology.Published, 1, "pci0000:a0"), at(topology.Unknown, 0, "pci0000:b0")},
		},
		"by a root in a list": {
			[]attributes{{root: textValue("r")}, {root: {StringValues: []string{"q", "r"}}, numa: intValue(1)}},
			[]topology.Location{at(topology.ByRoot, 1, "r"), at(topology.Published, 1, "q", "r")},
		},
		"a root of two minds": {
			[]attributes{{root: textValue("r")}, {root: textValue("r"), numa: intValue(0)}, {root: textValue("r"), numa: intValue(1)}},
			[]topology.Location{at(topology.Unknown, 0, "r"), at(topology.Published, 0, "r"), at(topology.Published, 1, "r")},
		},
		"by domain": {
			[]attributes{{root: textValue("pci0008:00")}, {root: textValue("pci0018:00")}, {root: textValue("pci0002:00"), numa: intValue(0)}, {root: textValue("pci0012:00"), numa: intValue(1)}},
			[]topology.Location{
				at(topology.ByDomain, 0, "pci0008:00"), at(topology.ByDomain, 1, "pci0018:00"),
				at(topology.Published, 0, "pci0002:00"), at(topology.Published, 1, "pci0012:00"),
			},
		},
		"one CPU with two NUMA nodes": {
			[]attributes{{root: textValue("pci0008:00")}, {root: textValue("pci0002:00"), numa: intValue(0)}, {root: textValue("pci0003:00"), numa: intValue(1)}},
			[]topology.Location{at(topology.Unknown, 0, "pci0008:00"), at(topology.Published, 0, "pci0002:00"), at(topology.Published, 1, "pci0003:00")},
		},
		"two CPUs on one NUMA node": {
			[]attributes{{root: textValue("pci0008:00")}, {root: textValue("pci0002:00"), numa: intValue(0)}, {root: textValue("pci0013:00"), numa: intValue(0)}},
			[]topology.Location{at(topology.Unknown, 0, "pci0008:00"), at(topology.Published, 0, "pci0002:00"), at(topology.Published, 0, "pci0013:00")},
		},
		"one CPU only": {
			[]attributes{{root: textValue("pci0008:00")}, {root: textValue("pci0002:00"), numa: intValue(0)}},
			[]topology.Location{at(topology.Unknown, 0, "pci0008:00"), at(topology.Published, 0, "pci0002:00")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var devices []topology.Device
			for _, a := range test.devices {
				devices = append(devices, topology.Device{Driver: "d.test", Attributes: a})
			}
			require.Empty(t, cmp.Diff(test.want, topology.Locate(devices)))
		})
	}
}

// anyMachine draws devices of three drivers that say any part of where they are.
func anyMachine() *rapid.Generator[topology.Topology] {
	names := rapid.SampledFrom([]resourceapi.QualifiedName{
		"resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode", "dra.net/numaNode", "dra.net/rdma", "cloud.test/group",
	})
	value := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"pci0000:10", "pci0008:00", "pci0018:00", "root", ""}), textValue),
		rapid.Map(rapid.Int64Range(-1, 3), intValue),
		rapid.Map(rapid.Bool(), func(b bool) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{BoolValue: &b} }),
		rapid.Map(rapid.SliceOfN(rapid.Int64Range(0, 2), 1, 2), func(l []int64) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{IntValues: l} }),
		rapid.Just(resourceapi.DeviceAttribute{StringValues: []string{"pci0000:10", "pci0008:00"}}),
	)
	return rapid.Custom(func(t *rapid.T) topology.Topology {
		topo := topology.Topology{Kind: topology.Machine}
		order := rapid.Permutation([]string{"0", "1", "2", "10", "x", "a-1", "1-a", "00", "011"}).Draw(t, "order")
		for _, name := range order[:rapid.IntRange(0, len(order)).Draw(t, "devices")] {
			topo.Devices = append(topo.Devices, topology.Device{
				Driver:     rapid.SampledFrom([]string{"gpu.test", "dra.net", "cpu.test"}).Draw(t, "driver"),
				Name:       "d-" + name,
				Attributes: rapid.MapOfN(names, value, 0, 4).Draw(t, "attributes"),
			})
		}
		return topo
	})
}

// TestBoardHasAll: each device is in one place of a board.
func TestBoardHasAll(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := anyMachine().Draw(t, "machine")
		board := topology.NewBoard(topo.Devices)
		var names []string
		add := func(devices []topology.Device) {
			for _, d := range devices {
				names = append(names, d.Name)
			}
		}
		for i, node := range board.NUMANodes {
			require.True(t, node.Known || i == len(board.NUMANodes)-1, "what is not known comes last")
			require.NotEmpty(t, len(node.Devices)+len(node.Roots))
			add(node.Devices)
			for _, root := range node.Roots {
				require.NotEmpty(t, root.Devices)
				add(root.Devices)
			}
		}
		add(board.Others)
		var want []string
		for _, d := range topo.Devices {
			want = append(want, d.Name)
		}
		require.ElementsMatch(t, want, names)
	})
}

// TestBoardOrder: devices come by driver, those with RDMA first, and by their numbers.
func TestBoardOrder(t *testing.T) {
	yes, no := true, false
	root := textValue("pci0000:10")
	device := func(driver, name string, rdma *bool) topology.Device {
		d := topology.Device{Driver: driver, Name: name, Attributes: attributes{"resource.kubernetes.io/pcieRoot": root}}
		if rdma != nil {
			d.Attributes["dra.net/rdma"] = resourceapi.DeviceAttribute{BoolValue: rdma}
		}
		return d
	}
	board := topology.NewBoard([]topology.Device{
		device("gpu.test", "gpu-10", nil), device("dra.net", "nic-1", &no), device("dra.net", "nic-02", &yes),
		device("gpu.test", "gpu-9", nil), device("dra.net", "nic-2", &yes),
	})
	var names []string
	for _, d := range board.NUMANodes[0].Roots[0].Devices {
		names = append(names, d.Name)
	}
	require.Equal(t, []string{"gpu-9", "gpu-10", "nic-2", "nic-02", "nic-1"}, names)
	require.Empty(t, board.Others, "an interface beside a GPU is none that nobody wants")
}
