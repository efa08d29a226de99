// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package enrichment

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/plugintest"
)

// part returns a ResourceSlice with one device of a pool with two ResourceSlices.
func part(name string, generation int64) *resourceapi.ResourceSlice {
	slice := plugintest.Slice()
	slice.Name = name
	slice.Spec.Pool = resourceapi.ResourcePool{Name: "pool", Generation: generation, ResourceSliceCount: 2}
	slice.Spec.Devices = []resourceapi.Device{{Name: name}}
	return slice
}

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error)    { return c, nil }
func (c classes) Get(string) (*resourceapi.DeviceClass, error) { return c[0], nil }

// devices returns the devices that upstream's allocator allocates to a claim on the node.
func devices(t *testing.T, slices []*resourceapi.ResourceSlice, claim *resourceapi.ResourceClaim) ([]string, error) {
	t.Helper()
	allocator, err := structured.NewAllocator(t.Context(), structured.Features{PartitionableDevices: true}, structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}, classes{plugintest.Class()}, slices, cel.NewCache(10, cel.Features{}))
	require.NoError(t, err)
	results, err := allocator.Allocate(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: plugintest.NodeName}}, []*resourceapi.ResourceClaim{claim})
	var names []string
	for _, result := range results {
		for _, device := range result.Devices.Results {
			names = append(names, device.Device)
		}
	}
	return names, err
}

// TestNoDevicesWithoutTheirAttributes checks that no device of a pool is allocated while one of its ResourceSlices is missing in
// the view, whether devices of an older generation are known or not.
func TestNoDevicesWithoutTheirAttributes(t *testing.T) {
	for name, test := range map[string]struct {
		known, missing []*resourceapi.ResourceSlice
	}{
		"no ResourceSlice":  {nil, []*resourceapi.ResourceSlice{part("a", 1), part("b", 1)}},
		"one of two":        {[]*resourceapi.ResourceSlice{part("a", 1)}, []*resourceapi.ResourceSlice{part("b", 1)}},
		"a new generation":  {[]*resourceapi.ResourceSlice{part("a", 1), part("b", 1)}, []*resourceapi.ResourceSlice{part("c", 2)}},
		"an old generation": {[]*resourceapi.ResourceSlice{part("a", 2), part("b", 2)}, []*resourceapi.ResourceSlice{part("c", 1)}},
		"devices with nodes": {nil, []*resourceapi.ResourceSlice{func() *resourceapi.ResourceSlice {
			slice := part("a", 1)
			slice.Spec.Pool.ResourceSliceCount = 1
			slice.Spec.NodeName, slice.Spec.PerDeviceNodeSelection = nil, ptr.To(true)
			slice.Spec.Devices[0].NodeName = ptr.To(plugintest.NodeName)
			return slice
		}()}},
	} {
		t.Run(name, func(t *testing.T) {
			all := append(append([]*resourceapi.ResourceSlice{plugintest.Slice(7)}, test.known...), test.missing...)
			names, err := devices(t, append([]*resourceapi.ResourceSlice{plugintest.Slice(7)}, test.missing...), plugintest.Claim(1))
			require.NoError(t, err)
			require.NotEmpty(t, names)
			v := &view{drivers: sets.New(plugintest.Driver), enriched: map[*resourceapi.ResourceSlice]*resourceapi.ResourceSlice{}}
			for _, slice := range test.known {
				v.enriched[slice] = slice
			}
			v.enriched[all[0]] = all[0]
			shown, complete := v.show(all)
			require.False(t, complete)
			require.Len(t, shown, len(all))
			names, err = devices(t, shown, plugintest.Claim(2))
			require.NoError(t, err)
			require.Empty(t, names)
			everything := plugintest.Claim(0)
			everything.Spec.Devices.Requests[0].Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
			_, err = devices(t, shown, everything)
			require.ErrorContains(t, err, "is currently being updated", "a request for all devices needs the pool, too")
			require.NotEmpty(t, all[len(all)-1].Spec.Devices, "the ResourceSlice itself stays unchanged")
		})
	}
}

// TestOtherDriversPass checks that ResourceSlices of other drivers are passed on as the same pointer.
func TestOtherDriversPass(t *testing.T) {
	slice := plugintest.Slice(1)
	shown, complete := (&view{drivers: sets.New("other.example.com")}).show([]*resourceapi.ResourceSlice{slice})
	require.True(t, complete)
	require.Len(t, shown, 1)
	require.Same(t, slice, shown[0])
}

// TestNothingWithoutEnrichment checks that programs without an Enrichment use their own manager.
func TestNothingWithoutEnrichment(t *testing.T) {
	_, h := plugintest.NewHandle(t)
	require.Equal(t, h.Manager, (*Enrichment)(nil).Manager(h.Manager))
	(*Enrichment)(nil).OnChange(nil)
	require.Nil(t, (&Enrichment{}).Manager(nil))
}
