// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomtopology"
	"github.com/celset/celset/internal/topology"
)

// TestInvariants checks properties that topologies of every kind have.
func TestInvariants(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := randomtopology.Any().Draw(t, "topology")
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

// TestNeighborsAgreeWithAttributes checks that two devices are neighbours if and only if their attributes say so.
func TestNeighborsAgreeWithAttributes(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := randomtopology.Any().Draw(t, "topology")
		a, b := anyDevice(t, topo, "a"), anyDevice(t, topo, "b")
		want := a.Name != b.Name && linkedByAttributes(topo, a, b)
		require.Equal(t, want, slices.Contains(a.Neighbors, b.Name), "%s and %s", a.Name, b.Name)
		require.Equal(t, want, slices.Contains(b.Neighbors, a.Name), "%s and %s", b.Name, a.Name)
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

// distance returns the difference of an int attribute of two devices. If closesAfter is not 0, it returns the shorter way
// around a ring of this length.
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

func TestSelect(t *testing.T) {
	topo := randomtopology.NewRing(t, 4)
	devices, err := topo.Select([]string{"mla-2", "mla-0"})
	require.NoError(t, err)
	require.Equal(t, []topology.Device{topo.Devices[2], topo.Devices[0]}, devices)

	for want, names := range map[string][]string{
		`ring of 4 mla.example.com: no device named`:                nil,
		`ring of 4 mla.example.com: has no device "mla-4"`:          {"mla-0", "mla-4"},
		`ring of 4 mla.example.com: device "mla-1" is named twice`:  {"mla-1", "mla-0", "mla-1"},
		`ring of 4 mla.example.com: has no device "MLA-0"`:          {"MLA-0"},
		`ring of 4 mla.example.com: has no device "mla-1 or mla-2"`: {"mla-1 or mla-2"},
	} {
		_, err := topo.Select(names)
		require.EqualError(t, err, want)
	}
}

func TestBadInput(t *testing.T) {
	mla, gpu, nic := randomtopology.MLA, randomtopology.GPU, randomtopology.NIC
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

// anyDevice draws a device of a topology.
func anyDevice(t *rapid.T, topo topology.Topology, label string) topology.Device {
	return rapid.SampledFrom(topo.Devices).Draw(t, label)
}

func distinct(names []string) []string {
	var result []string
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			result = append(result, name)
		}
	}
	return result
}

func TestResourceSlicesSplit(t *testing.T) {
	withList := randomtopology.NewRing(t, 130)
	withList.Devices[129].Attributes["list"] = resourceapi.DeviceAttribute{IntValues: []int64{1, 2}}
	tests := map[string]struct {
		topology topology.Topology
		want     []int
	}{
		"one slice, full":  {randomtopology.NewRing(t, 128), []int{128}},
		"one device more":  {randomtopology.NewRing(t, 129), []int{128, 1}},
		"three slices":     {randomtopology.NewTorus(t, 20, 20), []int{128, 128, 128, 16}},
		"list attribute":   {withList, []int{64, 64, 2}},
		"pool by pool":     {randomtopology.NewCouples(t, 130), []int{128, 2, 128, 2}},
		"pools of one":     {randomtopology.NewCouples(t, 1), []int{1, 1}},
		"peers with lists": {randomtopology.NewCubeMesh(t, topology.PeersAsStringAndList), []int{8}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			slices, err := test.topology.ResourceSlices("node-1")
			require.NoError(t, err)
			var sizes []int
			for _, slice := range slices {
				sizes = append(sizes, len(slice.Spec.Devices))
			}
			require.Equal(t, test.want, sizes)
		})
	}
}

// TestResourceSlicesProperties checks that the API server would accept the slices, and that each pool has all devices of its
// driver.
func TestResourceSlicesProperties(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := randomtopology.Any().Draw(t, "topology")
		slices, err := topo.ResourceSlices("node-1.example.com")
		require.NoError(t, err)
		var devices []string
		names := map[string]bool{}
		perDriver := map[string]int64{}
		for _, slice := range slices {
			require.Empty(t, validation.IsDNS1123Subdomain(slice.Name))
			require.False(t, names[slice.Name], "%s occurs twice", slice.Name)
			names[slice.Name] = true
			perDriver[slice.Spec.Driver]++
			requireSpec(t, slice.Spec)
			for _, device := range slice.Spec.Devices {
				devices = append(devices, slice.Spec.Driver+"/"+device.Name)
			}
		}
		for _, slice := range slices {
			require.Equal(t, perDriver[slice.Spec.Driver], slice.Spec.Pool.ResourceSliceCount)
		}
		var want []string
		for _, d := range topo.Devices {
			want = append(want, d.Driver+"/"+d.Name)
		}
		require.Equal(t, want, devices)
	})
}

func requireSpec(t require.TestingT, spec resourceapi.ResourceSliceSpec) {
	require.Equal(t, "node-1.example.com", *spec.NodeName)
	require.Equal(t, "node-1.example.com", spec.Pool.Name)
	require.Equal(t, int64(1), spec.Pool.Generation)
	require.NotEmpty(t, spec.Devices)
	limit := resourceapi.ResourceSliceMaxDevices
	for _, device := range spec.Devices {
		values := 0
		for name, attribute := range device.Attributes {
			require.LessOrEqual(t, len(name), resourceapi.DeviceMaxDomainLength+1+resourceapi.DeviceMaxIDLength)
			if attribute.StringValue != nil {
				require.LessOrEqual(t, len(*attribute.StringValue), resourceapi.DeviceAttributeMaxValueLength)
			}
			if attribute.StringValues != nil {
				limit = resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures
			}
			values += max(1, len(attribute.StringValues))
		}
		require.LessOrEqual(t, len(device.Attributes), resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
		require.LessOrEqual(t, values, resourceapi.ResourceSliceMaxAttributeValuesPerDevice)
	}
	require.LessOrEqual(t, len(spec.Devices), limit)
}

func TestResourceSlicesShareNothing(t *testing.T) {
	topo := randomtopology.NewCubeMesh(t, topology.PeersAsStringAndList)
	first, err := topo.ResourceSlices("node-1")
	require.NoError(t, err)
	want := fmt.Sprint(topo)
	attributes := first[0].Spec.Devices[0].Attributes
	*attributes["id"].StringValue = "changed"
	attributes["peerList"].StringValues[0] = "changed"
	delete(attributes, "peers")
	*first[0].Spec.NodeName = "changed"
	require.Equal(t, want, fmt.Sprint(topo))
	require.Empty(t, cmp.Diff(randomtopology.NewCubeMesh(t, topology.PeersAsStringAndList), topo))
}

func TestResourceSlicesBadNode(t *testing.T) {
	tests := map[string]string{
		"":                       `node name "": a lowercase RFC 1123 subdomain must consist of`,
		"Node":                   `node name "Node": a lowercase RFC 1123 subdomain must consist of`,
		strings.Repeat("n", 240): `the name of its ResourceSlice would be "nnn`,
	}
	for nodeName, want := range tests {
		slices, err := randomtopology.NewRing(t, 4).ResourceSlices(nodeName)
		require.ErrorContains(t, err, want)
		require.Empty(t, slices)
	}
}
