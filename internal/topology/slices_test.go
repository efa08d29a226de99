// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
)

func TestResourceSlices(t *testing.T) {
	got, err := couples(t, 1).ResourceSlices("node-1")
	require.NoError(t, err)
	slice := func(family topology.Family) *resourceapi.ResourceSlice {
		return &resourceapi.ResourceSlice{
			TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"},
			ObjectMeta: metav1.ObjectMeta{Name: "node-1-" + family.Driver + "-0"},
			Spec: resourceapi.ResourceSliceSpec{
				Driver:   family.Driver,
				Pool:     resourceapi.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 1},
				NodeName: new("node-1"),
				Devices: []resourceapi.Device{{
					Name: family.Prefix + "-0",
					Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
						"resource.kubernetes.io/pcieRoot": {StringValue: new("pci0000:00")},
					},
				}},
			},
		}
	}
	want := []*resourceapi.ResourceSlice{slice(gpu), slice(nic)}
	require.Empty(t, cmp.Diff(want, got))
}

func TestResourceSlicesSplit(t *testing.T) {
	withList := ring(t, 130)
	withList.Devices[129].Attributes["list"] = resourceapi.DeviceAttribute{IntValues: []int64{1, 2}}
	tests := map[string]struct {
		topology topology.Topology
		want     []int
	}{
		"one slice, full":  {ring(t, 128), []int{128}},
		"one device more":  {ring(t, 129), []int{128, 1}},
		"three slices":     {torus(t, 20, 20), []int{128, 128, 128, 16}},
		"list attribute":   {withList, []int{64, 64, 2}},
		"pool by pool":     {couples(t, 130), []int{128, 2, 128, 2}},
		"pools of one":     {couples(t, 1), []int{1, 1}},
		"peers with lists": {cubeMesh(t, topology.PeersAsStringAndList), []int{8}},
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

// TestResourceSlicesProperties checks what the API server would: that it accepts
// the slices and that the pools are complete.
func TestResourceSlicesProperties(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := anyTopology().Draw(t, "topology")
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
	topo := cubeMesh(t, topology.PeersAsStringAndList)
	first, err := topo.ResourceSlices("node-1")
	require.NoError(t, err)
	want := fmt.Sprint(topo)
	attributes := first[0].Spec.Devices[0].Attributes
	*attributes["id"].StringValue = "changed"
	attributes["peerList"].StringValues[0] = "changed"
	delete(attributes, "peers")
	*first[0].Spec.NodeName = "changed"
	require.Equal(t, want, fmt.Sprint(topo))
	require.Empty(t, cmp.Diff(cubeMesh(t, topology.PeersAsStringAndList), topo))
}

func TestResourceSlicesBadNode(t *testing.T) {
	tests := map[string]string{
		"":                       `node name "": a lowercase RFC 1123 subdomain must consist of`,
		"Node":                   `node name "Node": a lowercase RFC 1123 subdomain must consist of`,
		strings.Repeat("n", 240): `the name of its ResourceSlice would be "nnn`,
	}
	for nodeName, want := range tests {
		slices, err := ring(t, 4).ResourceSlices(nodeName)
		require.ErrorContains(t, err, want)
		require.Empty(t, slices)
	}
}
