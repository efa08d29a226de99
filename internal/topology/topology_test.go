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
	refused := func(topo topology.Topology, err error) error {
		require.Empty(t, cmp.Diff(topology.Topology{}, topo))
		return err
	}
	named := func(driver, prefix string) topology.Family { return topology.Family{Driver: driver, Prefix: prefix} }
	for want, err := range map[string]error{
		"ring: devices: must be 3 to 4096, is 2":                                                     refused(topology.NewRing(mla, 2)),
		"ring: devices: must be 3 to 4096, is -1":                                                    refused(topology.NewRing(mla, -1)),
		"mesh: rows: must be 1 to 4096, is 0":                                                        refused(topology.NewMesh(mla, 0, 4)),
		"mesh: devices (65x64): must be 1 to 4096, is 4160":                                          refused(topology.NewMesh(mla, 65, 64)),
		"torus: cols: must be 2 to 4096, is 1":                                                       refused(topology.NewTorus(mla, 4, 1)),
		"bridge pairs: devices: must be an even number, is 3":                                        refused(topology.NewBridgePairs(gpu, 3)),
		"bridge pairs: devices: must be 2 to 4096, is 0":                                             refused(topology.NewBridgePairs(gpu, 0)),
		"couples: couples: must be 1 to 2048, is 2049":                                               refused(topology.NewCouples(gpu, nic, 2049)),
		`couples: prefix "gpu": must not be that of both`:                                            refused(topology.NewCouples(gpu, named(nic.Driver, gpu.Prefix), 4)),
		`ring: driver "MLA": a lowercase RFC 1123 subdomain must`:                                    refused(topology.NewRing(named("MLA", "mla"), 4)),
		`torus: driver "` + strings.Repeat("d", 64) + `": must be no more than 63 characters, is 64`: refused(topology.NewTorus(named(strings.Repeat("d", 64), "mla"), 4, 4)),
		`bridge pairs: prefix "GPU": device name "GPU-3": a lowercase RFC 1123 label must`:           refused(topology.NewBridgePairs(named(gpu.Driver, "GPU"), 4)),
		`couples: NICs: prefix "": device name "-3": a lowercase RFC 1123 label must`:                refused(topology.NewCouples(gpu, named(nic.Driver, ""), 4)),
		`m-10": must be no more than 63 characters`:                                                  refused(topology.NewRing(named(mla.Driver, strings.Repeat("m", 61)), 11)),
		`attribute "peers" of mmmmmmmmmmmmmm-0 has 67 characters, the API allows 64`:                 refused(topology.NewHybridCubeMesh(named(mla.Driver, strings.Repeat("m", 14)), topology.PeersAsString)),
	} {
		require.ErrorContains(t, err, want)
	}
}
