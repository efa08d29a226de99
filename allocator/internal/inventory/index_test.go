// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

func onNodes(names ...string) []*resourceapi.ResourceSlice {
	var all []*resourceapi.ResourceSlice
	for _, name := range names {
		all = append(all, &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{NodeName: &name}})
	}
	return all
}

// The index is reused only for a list of the same slices.
func TestIndexIsOfTheSameSlices(t *testing.T) {
	all := onNodes("a", "b", "b", "", "c")
	for name, test := range map[string]struct {
		slices []*resourceapi.ResourceSlice
		same   bool
	}{
		"same":        {all, true},
		"other order": {[]*resourceapi.ResourceSlice{all[4], all[1], all[3], all[0], all[2]}, true},
		"one less":    {all[1:], false},
		"one more":    {append(onNodes("d"), all...), false},
		"equal":       {onNodes("a", "b", "b", "", "c"), false},
		"one twice":   {[]*resourceapi.ResourceSlice{all[0], all[0], all[2], all[3], all[4]}, false},
		"none":        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var latest Latest
			first := latest.Of(all)
			require.Equal(t, test.same, first == latest.Of(test.slices))
		})
	}
}

// A list that contains a slice twice gets a new index each time.
func TestIndexOfRepeatedSlices(t *testing.T) {
	all := onNodes("a", "b")
	twice := append(all, all[0])
	var latest Latest
	require.Len(t, latest.Of(twice).of("a").slices, 2)
	require.NotSame(t, latest.Of(twice), latest.Of(twice))
}

func TestIndexByNode(t *testing.T) {
	all := onNodes("a", "b", "b", "")
	all[2].Spec.PerDeviceNodeSelection = ptr.To(true)
	index := newIndex(all)
	require.Equal(t, all[:1], index.of("a").slices)
	require.False(t, index.of("a").byDevice)
	require.Equal(t, all[1:3], index.of("b").slices)
	require.True(t, index.of("b").byDevice)
	require.Equal(t, all[3:], index.other)
	require.Empty(t, index.of("c").slices)
}

func named(name string) *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// The cache of dependent inventories is limited. A new version of a node replaces the old version.
func TestDependentInventoriesAreBounded(t *testing.T) {
	var kept dependentInventories
	none := structured.Features{}
	half := &Inventory{Candidates: make([]*Candidate, maxDependentDevices/2-1)}
	one, two, three := named("node-1"), named("node-2"), named("node-3")
	kept.store(none, one, half)
	kept.store(none, two, half)
	require.Equal(t, maxDependentDevices, kept.size)
	kept.store(none, three, &Inventory{})
	require.Nil(t, kept.get(none, three), "no room")
	require.Same(t, half, kept.get(none, two))

	newer := named("node-2")
	kept.store(none, newer, &Inventory{})
	require.Nil(t, kept.get(none, two))
	require.NotNil(t, kept.get(none, newer))
	kept.store(none, three, &Inventory{})
	require.NotNil(t, kept.get(none, three), "there is room again")
	require.Equal(t, maxDependentDevices/2+2, kept.size)
}

func TestDuplicateDevice(t *testing.T) {
	slice := func(names ...string) *resourceapi.ResourceSlice {
		s := &resourceapi.ResourceSlice{}
		for _, name := range names {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: name})
		}
		return s
	}
	one := slice("a", "b")
	require.Empty(t, duplicateDevice([]*resourceapi.ResourceSlice{one}))
	require.Equal(t, "duplicate device name a", duplicateDevice([]*resourceapi.ResourceSlice{one, slice("a")}))
}

func sliceOfPool(name, node string, generation, count int64, devices ...string) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
		Driver: "driver", NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: "pool", Generation: generation, ResourceSliceCount: count},
	}}
	for _, device := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: device})
	}
	return slice
}

// Whole returns a pool with the devices of all nodes in the latest generation.
func TestWhole(t *testing.T) {
	features := structured.Features{PartitionableDevices: true, CompatibilityGroups: true}
	id := ID{Driver: "driver", Name: "pool"}
	devices := func(p *Pool) (names []string) {
		p.EachDevice(func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) { names = append(names, d.Name) })
		return names
	}
	require.Nil(t, Whole(features, id, nil))

	former, first, second := sliceOfPool("0", "a", 1, 1, "x"), sliceOfPool("1", "a", 2, 2, "a"), sliceOfPool("2", "b", 2, 2, "b")
	p := Whole(features, id, []*resourceapi.ResourceSlice{former, first, second})
	require.False(t, p.Incomplete)
	require.Empty(t, p.Invalid)
	require.Equal(t, []string{"a", "b"}, devices(p))

	p = Whole(features, id, []*resourceapi.ResourceSlice{former, first})
	require.True(t, p.Incomplete)
	require.Equal(t, []string{"a"}, devices(p))

	second.Spec.Devices[0].ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "none"}}
	p = Whole(features, id, []*resourceapi.ResourceSlice{first, second})
	require.Equal(t, "counter set none not found", p.Invalid)
	require.Equal(t, []string{"a", "b"}, devices(p))
}

// A pool is invalid if its slices have different values of resourceSliceCount, in any order of the slices.
func TestCountsThatDisagree(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	slice := func(name, node string, count int64) *resourceapi.ResourceSlice {
		return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: "driver", NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: "pool", ResourceSliceCount: count},
		}}
	}
	for name, all := range map[string][]*resourceapi.ResourceSlice{
		"here":      {slice("a", "node-1", 2), slice("b", "node-1", 3)},
		"one says":  {slice("a", "node-1", 1), slice("b", "node-1", 2)},
		"elsewhere": {slice("a", "node-1", 2), slice("b", "node-2", 3)},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				slices.Reverse(all)
				index := newIndex(all)
				has, err := index.Of(structured.Features{}, node, all)
				require.NoError(t, err)
				require.Len(t, has.Pools, 1)
				require.Equal(t, "resourceSliceCount is not the same in all slices", has.Pools[0].Invalid)
				require.False(t, has.Pools[0].Incomplete)
				require.False(t, has.selfContained)
				require.Equal(t, has.Pools[0].Invalid, Whole(structured.Features{}, has.Pools[0].ID, all).Invalid)
			}
		})
	}
}
