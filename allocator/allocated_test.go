// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

func TestAllocatedTo(t *testing.T) {
	owning := func(result resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
		result.Driver, result.Pool = "d", "p"
		return &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}},
		}}}
	}
	share := func(id types.UID, memory string) *resourceapi.ResourceClaim {
		return owning(resourceapi.DeviceRequestAllocationResult{
			Device: "shared", ShareID: ptr.To(id),
			ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)},
		})
	}
	claims := []*resourceapi.ResourceClaim{
		owning(resourceapi.DeviceRequestAllocationResult{Device: "a"}), share("1", "1Gi"), share("2", "2Gi"),
		owning(resourceapi.DeviceRequestAllocationResult{Device: "b", AdminAccess: ptr.To(true)}),
		{},
	}
	a, shared := structured.MakeDeviceID("d", "p", "a"), structured.MakeDeviceID("d", "p", "shared")

	shares := AllocatedTo(claims, structured.Features{ConsumableCapacity: true})
	require.ElementsMatch(t, []structured.DeviceID{a}, shares.AllocatedDevices.UnsortedList())
	require.Len(t, shares.AllocatedSharedDeviceIDs, 2)
	require.True(t, shares.AggregatedCapacity[shared]["memory"].Equal(resource.MustParse("3Gi")))

	whole := AllocatedTo(claims, structured.Features{})
	require.ElementsMatch(t, []structured.DeviceID{a, shared}, whole.AllocatedDevices.UnsortedList())
	require.Empty(t, whole.AllocatedSharedDeviceIDs)
	require.Empty(t, whole.AggregatedCapacity)
}
