// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

const driver = "mla.example.com"

// features are those that are on by default in Kubernetes 1.37, so that upstream
// uses its default variant.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
	FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true,
}

// ofMesh is a claim for so many devices of a mesh that satisfy an expression, where all are free.
func ofMesh(rows, cols, count int, expression string) shape.Scenario {
	mesh, err := topology.NewMesh(topology.Family{Driver: driver, Prefix: "mla"}, rows, cols)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return shape.Scenario{Topology: mesh, Requests: []shape.Request{{Name: "mla", Driver: driver, Count: count}}, Expression: expression}
}

// asked is one node where all devices are free, and the claim.
func asked(tb testing.TB, s shape.Scenario) (*fleet, []*resourceapi.ResourceClaim) {
	tb.Helper()
	claim, err := s.Claim()
	require.NoError(tb, err)
	return newHardware(tb, s, 1).occupied([]shape.Set{0}), []*resourceapi.ResourceClaim{claim}
}
