// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
)

func TestString(t *testing.T) {
	for want, topo := range map[string]topology.Topology{
		"ring of 8 mla.example.com":                        ring(t, 8),
		"2x4 mesh of mla.example.com":                      mesh(t, 2, 4),
		"4x3 torus of mla.example.com":                     torus(t, 4, 3),
		"4 bridged pairs of gpu.example.com":               bridgePairs(t, 8),
		"3 couples of gpu.example.com and nic.example.com": couples(t, 3),
		"hybrid cube mesh of 8 mla.example.com":            cubeMesh(t, topology.PeersAsString),
	} {
		require.Equal(t, want, topo.String())
	}
}

// TestInvariants holds for every kind of topology.
func TestInvariants(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := anyTopology().Draw(t, "topology")
		seen := map[string]bool{}
		edges := map[topology.Edge]int{}
		for _, edge := range topo.Edges() {
			edges[edge]++
		}
		ends := 0
		for _, d := range topo.Devices {
			require.Empty(t, validation.IsDNS1123Label(d.Name))
			require.False(t, seen[d.Name], "%s occurs twice", d.Name)
			seen[d.Name] = true
			require.NotContains(t, d.Neighbors, d.Name)
			require.Equal(t, distinct(d.Neighbors), d.Neighbors)
			for _, name := range d.Neighbors {
				neighbor, found := topo.Device(name)
				require.True(t, found, "%s, neighbour of %s", name, d.Name)
				require.Contains(t, neighbor.Neighbors, d.Name)
				require.Equal(t, 1, edges[topology.Edge{A: d.Name, B: name}]+edges[topology.Edge{A: name, B: d.Name}])
				ends++
			}
		}
		require.Len(t, topo.Edges(), ends/2)
	})
}

// TestAdjacentAgreesWithAttributes compares the links with what a reader of the
// attributes alone would take them to be.
func TestAdjacentAgreesWithAttributes(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := anyTopology().Draw(t, "topology")
		a, b := anyDevice(t, topo, "a"), anyDevice(t, topo, "b")
		want := a.Name != b.Name && linkedByAttributes(topo, a, b)
		require.Equal(t, want, topo.Adjacent(a.Name, b.Name), "%s and %s", a.Name, b.Name)
		require.Equal(t, want, topo.Adjacent(b.Name, a.Name), "%s and %s", b.Name, a.Name)
	})
}

func linkedByAttributes(topo topology.Topology, a, b topology.Device) bool {
	switch topo.Kind {
	case topology.Ring:
		return distance(a, b, topology.AttributeIndex, len(topo.Devices)) == 1
	case topology.Mesh:
		return distance(a, b, topology.AttributeRow, 0)+distance(a, b, topology.AttributeCol, 0) == 1
	case topology.Torus:
		return distance(a, b, topology.AttributeRow, topo.Rows)+distance(a, b, topology.AttributeCol, topo.Cols) == 1
	case topology.BridgePairs:
		return text(a, topology.AttributeBridge) == text(b, topology.AttributeBridge)
	case topology.Couples:
		return text(a, topology.AttributePCIeRoot) == text(b, topology.AttributePCIeRoot)
	default:
		return slices.Contains(strings.Split(text(a, topology.AttributePeers), ","), text(b, topology.AttributeID))
	}
}

// distance between two int attributes, the short way round if they close after
// so many.
func distance(a, b topology.Device, name resourceapi.QualifiedName, closesAfter int) int {
	difference := int(*a.Attributes[name].IntValue - *b.Attributes[name].IntValue)
	difference = max(difference, -difference)
	if closesAfter > 0 {
		return min(difference, closesAfter-difference)
	}
	return difference
}

func text(d topology.Device, name resourceapi.QualifiedName) string {
	return *d.Attributes[name].StringValue
}

func TestNeighbors(t *testing.T) {
	tests := map[string]struct {
		topology  topology.Topology
		count     int
		neighbors map[string][]string
	}{
		"ring": {ring(t, 5), 5, map[string][]string{
			"mla-0": {"mla-1", "mla-4"},
			"mla-2": {"mla-1", "mla-3"},
		}},
		"mesh": {mesh(t, 2, 3), 6, map[string][]string{
			"mla-0": {"mla-1", "mla-3"},
			"mla-4": {"mla-1", "mla-3", "mla-5"},
		}},
		"mesh of one": {mesh(t, 1, 1), 1, map[string][]string{"mla-0": nil}},
		"torus": {torus(t, 3, 4), 12, map[string][]string{
			"mla-0": {"mla-1", "mla-3", "mla-4", "mla-8"},
			"mla-5": {"mla-1", "mla-4", "mla-6", "mla-9"},
		}},
		"torus of two": {torus(t, 2, 2), 4, map[string][]string{"mla-0": {"mla-1", "mla-2"}}},
		"pairs":        {bridgePairs(t, 4), 4, map[string][]string{"gpu-2": {"gpu-3"}}},
		"couples":      {couples(t, 2), 4, map[string][]string{"gpu-1": {"nic-1"}, "nic-0": {"gpu-0"}}},
		"cube mesh": {cubeMesh(t, topology.PeersAsString), 8, map[string][]string{
			"mla-0": {"mla-1", "mla-2", "mla-3", "mla-4"},
			"mla-6": {"mla-2", "mla-4", "mla-5", "mla-7"},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Len(t, test.topology.Devices, test.count)
			for device, want := range test.neighbors {
				d, found := test.topology.Device(device)
				require.True(t, found)
				require.Equal(t, want, d.Neighbors)
			}
		})
	}
}

func TestAttributes(t *testing.T) {
	number := func(n int64) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{IntValue: &n} }
	text := func(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }
	peers := []string{"mla-1", "mla-4", "mla-6", "mla-7"}
	tests := map[string]struct {
		topology topology.Topology
		device   string
		driver   string
		want     map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	}{
		"ring": {ring(t, 4), "mla-3", "mla.example.com",
			map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": number(3)}},
		"mesh": {mesh(t, 2, 3), "mla-5", "mla.example.com",
			map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"row": number(1), "col": number(2)}},
		"torus": {torus(t, 2, 3), "mla-2", "mla.example.com",
			map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"row": number(0), "col": number(2)}},
		"pairs": {bridgePairs(t, 4), "gpu-3", "gpu.example.com",
			map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"bridge": text("bridge-1")}},
		"couples": {couples(t, 18), "nic-17", "nic.example.com",
			map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"resource.kubernetes.io/pcieRoot": text("pci0001:10")}},
		"cube mesh": {cubeMesh(t, topology.PeersAsString), "mla-5", "mla.example.com",
			map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"id": text("mla-5"), "peers": text(strings.Join(peers, ","))}},
		"cube mesh with lists": {cubeMesh(t, topology.PeersAsStringAndList), "mla-5", "mla.example.com",
			map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"id": text("mla-5"), "peers": text(strings.Join(peers, ",")), "peerList": {StringValues: peers}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, found := test.topology.Device(test.device)
			require.True(t, found)
			require.Equal(t, test.driver, d.Driver)
			require.Empty(t, cmp.Diff(test.want, d.Attributes))
		})
	}
}

func TestBadInput(t *testing.T) {
	long := topology.Family{Driver: mla.Driver, Prefix: strings.Repeat("m", 14)}
	tests := map[string]struct {
		make func() (topology.Topology, error)
		want string
	}{
		"ring too small": {
			func() (topology.Topology, error) { return topology.NewRing(mla, 2) },
			"ring: devices: must be 3 to 4096, is 2"},
		"ring negative": {
			func() (topology.Topology, error) { return topology.NewRing(mla, -1) },
			"ring: devices: must be 3 to 4096, is -1"},
		"mesh without rows": {
			func() (topology.Topology, error) { return topology.NewMesh(mla, 0, 4) },
			"mesh: rows: must be 1 to 4096, is 0"},
		"mesh too large": {
			func() (topology.Topology, error) { return topology.NewMesh(mla, 65, 64) },
			"mesh: devices (65x64): must be 1 to 4096, is 4160"},
		"torus of one column": {
			func() (topology.Topology, error) { return topology.NewTorus(mla, 4, 1) },
			"torus: cols: must be 2 to 4096, is 1"},
		"odd pairs": {
			func() (topology.Topology, error) { return topology.NewBridgePairs(gpu, 3) },
			"bridge pairs: devices: must be an even number, is 3"},
		"no pairs": {
			func() (topology.Topology, error) { return topology.NewBridgePairs(gpu, 0) },
			"bridge pairs: devices: must be 2 to 4096, is 0"},
		"too many couples": {
			func() (topology.Topology, error) { return topology.NewCouples(gpu, nic, 2049) },
			"couples: couples: must be 1 to 2048, is 2049"},
		"couples with one prefix": {
			func() (topology.Topology, error) {
				return topology.NewCouples(gpu, topology.Family{Driver: nic.Driver, Prefix: gpu.Prefix}, 4)
			},
			`couples: prefix "gpu": must not be that of both GPUs and NICs`},
		"driver": {
			func() (topology.Topology, error) {
				return topology.NewRing(topology.Family{Driver: "MLA", Prefix: "mla"}, 4)
			},
			`ring: driver "MLA": a lowercase RFC 1123 subdomain must consist of`},
		"long driver": {
			func() (topology.Topology, error) {
				return topology.NewTorus(topology.Family{Driver: strings.Repeat("d", 64), Prefix: "mla"}, 4, 4)
			},
			`must be no more than 63 characters, is 64`},
		"prefix": {
			func() (topology.Topology, error) {
				return topology.NewBridgePairs(topology.Family{Driver: gpu.Driver, Prefix: "GPU"}, 4)
			},
			`bridge pairs: prefix "GPU": device name "GPU-3": a lowercase RFC 1123 label must consist of`},
		"no prefix": {
			func() (topology.Topology, error) {
				return topology.NewCouples(gpu, topology.Family{Driver: nic.Driver}, 4)
			},
			`couples: NICs: prefix "": device name "-3": a lowercase RFC 1123 label must consist of`},
		"prefix long for the number of devices": {
			func() (topology.Topology, error) {
				return topology.NewRing(topology.Family{Driver: mla.Driver, Prefix: strings.Repeat("m", 61)}, 11)
			},
			`must be no more than 63 characters`},
		"prefix long for peers": {
			func() (topology.Topology, error) { return topology.NewHybridCubeMesh(long, topology.PeersAsString) },
			`attribute "peers" of mmmmmmmmmmmmmm-0 has 67 characters, the API allows 64: use a shorter prefix`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topo, err := test.make()
			require.ErrorContains(t, err, test.want)
			require.Empty(t, cmp.Diff(topology.Topology{}, topo))
		})
	}
}
