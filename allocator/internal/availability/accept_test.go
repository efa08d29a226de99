// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/inventory"
)

// What is missing of a device that somebody else has chosen. Package allocator tests it with pools.
func TestAccept(t *testing.T) {
	const memory = resourceapi.QualifiedName("memory")
	four := resource.MustParse("4")
	pool := &inventory.Pool{CounterSets: map[string]map[string]resourceapi.Counter{"chip": {"memory": {Value: four}}}}
	device := func(name string, position int, shared bool) *inventory.Candidate {
		return &inventory.Candidate{
			ID: structured.MakeDeviceID("driver", "pool", name), Pool: pool, Position: position, Shared: shared,
			Device: &resourceapi.Device{Name: name, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{memory: {Value: four}}},
		}
	}
	partition := func(name string, position int) *inventory.Candidate {
		c := device(name, position, false)
		c.Device.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "chip", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("3")}}}}
		return c
	}
	allocated := device("allocated", 0, false)
	shared := structured.MakeSharedDeviceID(structured.MakeDeviceID("driver", "pool", "others"), ptr.To(types.UID("1")))
	state := NewState(structured.AllocatedState{
		AllocatedDevices: sets.New(allocated.ID), AllocatedSharedDeviceIDs: sets.New(shared),
	})
	a := New(structured.Features{ConsumableCapacity: true, PartitionableDevices: true, CompatibilityGroups: true}, nil, state, state.Of([]*inventory.Candidate{allocated}), 8)

	accept := func(c *inventory.Candidate, amount string) Shortage {
		var consumed capacity.Amounts
		if amount != "" {
			consumed = capacity.Amounts{memory: resource.MustParse(amount)}
		}
		shortage, name := a.Accept(c, consumed)
		require.Equal(t, shortage == NoCapacity, name == memory)
		return shortage
	}
	require.Equal(t, InUse, accept(allocated, ""))
	require.Equal(t, SharesInUse, accept(device("others", 1, false), ""))
	require.Equal(t, NoShortage, accept(device("whole", 2, false), ""))
	require.Equal(t, InUse, accept(device("whole", 2, true), "1"))
	require.Equal(t, NoShortage, accept(device("shares", 3, true), "3"))
	require.Equal(t, NoCapacity, accept(device("shares", 3, true), "2"))
	require.Equal(t, NoShortage, accept(device("shares", 3, true), "1"))
	require.Equal(t, SharesInUse, accept(device("shares", 3, false), ""))
	require.Equal(t, NoShortage, accept(partition("part-0", 4), ""))
	require.Equal(t, NoCounters, accept(partition("part-1", 5), ""))
	require.Equal(t, NoShortage, accept(&inventory.Candidate{ID: structured.MakeDeviceID("driver", "pool", "unknown"), Position: 6}, ""))
}
