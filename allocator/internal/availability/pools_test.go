// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/internal/testing/cases"
)

// What pools tell is what looking up each device tells, whatever else is in use.
func TestPoolsAreTheState(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
		inUse := sets.New[structured.DeviceID]()
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
					slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: name})
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
		has, err := inventory.New(structured.Features{}, node, published, published)
		require.NoError(t, err)
		state := NewState(structured.AllocatedState{AllocatedDevices: inUse})
		require.Equal(t, state.Of(has.Candidates), state.Pools().Of(has))
	})
}
