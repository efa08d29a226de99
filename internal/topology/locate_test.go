// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

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
