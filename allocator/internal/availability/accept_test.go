// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/internal/testing/cases"
)

// Accept returns the shortage for a device that another program has chosen. Tests of package allocator check Accept with pools.
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

// Pools.Of returns the same devices as State.Of, which looks up each device.
func TestPoolsAreTheState(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
		inUse, shares := sets.New[structured.DeviceID](), sets.New[structured.SharedDeviceID]()
		var published []*resourceapi.ResourceSlice
		for p := range rapid.IntRange(0, 3).Draw(t, "pools") {
			driver, pool := fmt.Sprint("driver-", p%2), fmt.Sprint("pool-", p/2)
			all := rapid.IntRange(1, 2).Draw(t, "slices")
			for s := range all {
				slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(driver, pool, s)}, Spec: resourceapi.ResourceSliceSpec{
					Driver: driver, NodeName: ptr.To("node"), Pool: resourceapi.ResourcePool{Name: pool, ResourceSliceCount: int64(all)},
				}}
				for d := range rapid.SampledFrom([]int{0, 1, 7, 70}).Draw(t, "devices") {
					name := fmt.Sprint("device-", s, "-", d)
					slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: name, AllowMultipleAllocations: ptr.To(rapid.Bool().Draw(t, "shared"))})
					if rapid.Bool().Draw(t, "share in use") {
						shares.Insert(structured.MakeSharedDeviceID(structured.MakeDeviceID(driver, pool, name), ptr.To(types.UID("1"))))
					}
					if rapid.Bool().Draw(t, "in use") {
						inUse.Insert(structured.MakeDeviceID(driver, pool, name))
					}
					if rapid.Bool().Draw(t, "elsewhere") {
						inUse.Insert(structured.MakeDeviceID(driver, "another", name))
					}
				}
				published = append(published, slice)
			}
		}
		has, err := inventory.New(structured.Features{ConsumableCapacity: true}, node, published, published)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "no shares") {
			shares = nil
		}
		state := NewState(structured.AllocatedState{AllocatedDevices: inUse, AllocatedSharedDeviceIDs: shares})
		require.Equal(t, state.Of(has.Candidates), state.Pools().Of(has))
		for _, c := range has.Candidates {
			share := structured.MakeSharedDeviceID(c.ID, ptr.To(types.UID("1")))
			require.Equal(t, inUse.Has(c.ID) || !c.Shared && shares.Has(share), state.Of(has.Candidates).Has(c.Position), "%s", c.ID)
		}
	})
}
