// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type anyClass struct{}

func (anyClass) Get(name string) (*resourceapi.DeviceClass, error) {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
}

func (anyClass) List() ([]*resourceapi.DeviceClass, error) { return nil, nil }

// Both nodes can reach the shared device. The first node also has a local device, which the search tries later.
func TestAllocateAcross(t *testing.T) {
	all, n0 := true, "n0"
	publish := func(pool string, local bool, devices ...string) *resourceapi.ResourceSlice {
		s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: pool}, Spec: resourceapi.ResourceSliceSpec{
			Driver: "nic.example.com", Pool: resourceapi.ResourcePool{Name: pool, ResourceSliceCount: 1}, AllNodes: &all,
		}}
		if local {
			s.Spec.AllNodes, s.Spec.NodeName = nil, &n0
		}
		for _, name := range devices {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: name})
		}
		return s
	}
	onNode := func(node string) NodeClaims {
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "of-" + node}}
		claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: "nic", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		}}}
		return NodeClaims{&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, []*resourceapi.ResourceClaim{claim}}
	}
	across := func(slices ...*resourceapi.ResourceSlice) [][]resourceapi.AllocationResult {
		a, err := NewAllocator(t.Context(), structured.Features{}, structured.AllocatedState{}, anyClass{}, slices, dracel.NewCache(10, dracel.Features{}))
		require.NoError(t, err)
		results, err := a.AllocateAcross(t.Context(), []NodeClaims{onNode("n0"), onNode("n1")})
		require.NoError(t, err)
		return results
	}
	require.Nil(t, across(publish("a-fabric", false, "only")))
	require.Len(t, across(publish("a-fabric", false, "one", "two")), 2)
	results := across(publish("a-fabric", false, "only"), publish("b-local", true, "own"))
	require.Len(t, results, 2, "the first node gives back what both reach")
	require.Equal(t, "own", results[0][0].Devices.Results[0].Device)
	require.Equal(t, "only", results[1][0].Devices.Results[0].Device)
}
