// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/availability"
)

func TestAllocatedStateOfDevices(t *testing.T) {
	s := availability.NewState(scenario{
		inUse: []string{"exclusive"},
		shares: []share{
			{device: "shared"},
			{device: "both", consumed: map[string]string{"memory": "1"}},
			{device: "both", consumed: map[string]string{"memory": "2", "cores": "1"}},
			{device: "capacity", consumed: map[string]string{"memory": "5"}, unnamed: true},
		},
	}.state())
	for name, want := range map[string]struct {
		allocated, shared bool
		consumed          map[string]int64
	}{
		"free":      {},
		"exclusive": {allocated: true},
		"shared":    {allocated: true, shared: true},
		"both":      {allocated: true, shared: true, consumed: map[string]int64{"memory": 3, "cores": 1}},
		"capacity":  {allocated: true, shared: true, consumed: map[string]int64{"memory": 5}},
	} {
		t.Run(name, func(t *testing.T) {
			id := deviceID(name)
			require.Equal(t, want.allocated, s.IsAllocated(id))
			require.Equal(t, want.shared, s.IsShared(id))
			consumed := s.AggregatedCapacity[id]
			require.Len(t, consumed, len(want.consumed))
			for name, quantity := range consumed {
				require.Equal(t, want.consumed[string(name)], quantity.Value())
			}
		})
	}
}

// The maps of an allocated state may be nil.
func TestEmptyState(t *testing.T) {
	s := scenario{slices: partitioned("9", part("a", "1", "g"), gpu("b", "1Gi")), claims: []*claimBuilder{claim("c").want("x", 2)}}
	for name, state := range map[string]structured.AllocatedState{
		"nil":   {},
		"empty": {AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](), AggregatedCapacity: structured.NewConsumedCapacityCollection()},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.allocator(t)
			a.state = availability.NewState(state)
			results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
			require.NoError(t, err)
			require.Equal(t, []string{"x=a", "x=b"}, devicesOf(results))
		})
	}
}
