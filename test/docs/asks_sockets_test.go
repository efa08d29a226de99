// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/topology"
)

const numaNodeAttribute = resourceapi.QualifiedName("resource.kubernetes.io/numaNode")

// twoSockets is a server of which each socket has two NUMA nodes. One driver publishes where a
// device is as a number, the other as a list, as package deviceattribute of Kubernetes does: the
// own NUMA node and then the other one of the socket, which is as near.
func twoSockets() topology.Topology {
	const numaNodes, gpusOfEach = 4, 2
	var devices []topology.Device
	for i := range numaNodes * gpusOfEach {
		devices = append(devices, topology.Device{
			Driver: "gpu.example.com", Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				numaNodeAttribute: {IntValue: new(int64(i / gpusOfEach))},
			},
		})
	}
	for i := range int64(numaNodes) {
		devices = append(devices, topology.Device{
			Driver: "nic.example.com", Name: fmt.Sprintf("nic-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				numaNodeAttribute: {IntValues: []int64{i, i ^ 1}},
			},
		})
	}
	return topology.Topology{Kind: topology.Machine, Devices: devices}
}

// haveNUMANodeInCommon knows both types.
func haveNUMANodeInCommon(set []topology.Device) bool {
	nodes := func(d topology.Device) []int64 {
		if value := d.Attributes[numaNodeAttribute]; value.IntValue != nil {
			return []int64{*value.IntValue}
		}
		return d.Attributes[numaNodeAttribute].IntValues
	}
	return slices.ContainsFunc(nodes(set[0]), func(node int64) bool {
		return !slices.ContainsFunc(set, func(d topology.Device) bool { return !slices.Contains(nodes(d), node) })
	})
}
