// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

func sliceOfPool(name, node string, generation, count int64, devices ...string) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
		Driver: "driver", NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: "pool", Generation: generation, ResourceSliceCount: count},
	}}
	for _, device := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: device})
	}
	return slice
}

// A whole pool has the devices of its latest generation, for whichever nodes they are.
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
