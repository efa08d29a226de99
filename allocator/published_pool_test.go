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
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/policy"
)

// given is a result of an allocation from pool-1.
func given(device string, edit ...func(*resourceapi.DeviceRequestAllocationResult)) resourceapi.DeviceRequestAllocationResult {
	r := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: "pool-1", Device: device}
	for _, one := range edit {
		one(&r)
	}
	return r
}

// aShare makes a result one of a share, with what it consumes of memory.
func aShare(id, memory string) func(*resourceapi.DeviceRequestAllocationResult) {
	return func(r *resourceapi.DeviceRequestAllocationResult) {
		r.ShareID = ptr.To(types.UID(id))
		r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}
	}
}

func asAdmin(r *resourceapi.DeviceRequestAllocationResult) { r.AdminAccess = ptr.To(true) }

func poolOf(builders ...*sliceBuilder) *PublishedPool {
	var slices []*resourceapi.ResourceSlice
	for _, b := range builders {
		slices = append(slices, b.ResourceSlice)
	}
	return NewPublishedPool(driver, "pool-1", slices)
}

func TestBeside(t *testing.T) {
	type all = []resourceapi.DeviceRequestAllocationResult
	plain := []*sliceBuilder{slice("1", newDevice("a", nil), newDevice("b", nil)).pool("pool-1", 1, 1)}
	gpus := []*sliceBuilder{slice("1", newDevice("a", nil, shared, policy.Having("memory", "10Gi", policy.Default("1Gi")))).pool("pool-1", 1, 1)}
	sharedParts := partitioned("4", part("whole", "4"), newDevice("half", nil, consuming("gpu", amounts{"memory": "2"}), shared))
	id := func(device string) structured.DeviceID { return structured.MakeDeviceID(driver, "pool-1", device) }
	for name, test := range map[string]struct {
		slices []*sliceBuilder
		others all
		chosen all
		// device and reason are empty if nothing is in the way.
		device, reason string
		stale          bool
		inTheWay       []structured.DeviceID
	}{
		"free":                          {slices: plain, others: all{given("a")}, chosen: all{given("b")}},
		"in use":                        {slices: plain, others: all{given("a")}, chosen: all{given("b"), given("a")}, device: "a", reason: "is in use"},
		"twice":                         {slices: plain, chosen: all{given("a"), given("a")}, device: "a", reason: "is in use"},
		"not published":                 {others: all{given("a")}, chosen: all{given("a")}, device: "a", reason: "is in use"},
		"not published and free":        {chosen: all{given("a"), given("b", aShare("1", "1"))}},
		"admin":                         {slices: plain, others: all{given("a")}, chosen: all{given("a", asAdmin)}},
		"beside admin":                  {slices: plain, others: all{given("a", asAdmin)}, chosen: all{given("a")}},
		"of another pool":               {slices: plain, others: all{given("a")}, chosen: all{{Driver: driver, Pool: "pool-2", Device: "a"}, {Driver: "other", Pool: "pool-1", Device: "a"}}},
		"room for a share":              {slices: gpus, others: all{given("a", aShare("1", "6Gi"))}, chosen: all{given("a", aShare("2", "4Gi"))}},
		"no room for a share":           {slices: gpus, others: all{given("a", aShare("1", "6Gi"))}, chosen: all{given("a", aShare("2", "5Gi"))}, device: "a", reason: "has not enough left of its capacity memory", stale: true},
		"no room for both":              {slices: gpus, chosen: all{given("a", aShare("1", "6Gi")), given("a", aShare("2", "5Gi"))}, device: "a", reason: "has not enough left of its capacity memory", stale: true},
		"negative":                      {slices: gpus, chosen: all{given("a", aShare("1", "-1"))}, device: "a", reason: "has not enough left of its capacity memory", stale: true},
		"share of a whole":              {slices: gpus, others: all{given("a")}, chosen: all{given("a", aShare("2", "1Gi"))}, device: "a", reason: "is in use"},
		"whole with shares":             {slices: gpus, others: all{given("a", aShare("1", "1"))}, chosen: all{given("a")}, device: "a", reason: "is chosen as a whole, and shares of it are in use"},
		"partitions":                    {slices: partitioned("4", part("whole", "4"), part("half-0", "2"), part("half-1", "2")), others: all{given("half-0")}, chosen: all{given("half-1")}},
		"partitions that others have":   {slices: partitioned("4", part("whole", "4"), part("half-0", "2"), part("half-1", "2")), others: all{given("half-0")}, chosen: all{given("whole")}, device: "whole", reason: "shares counters with devices in use, and too little of them is left", stale: true, inTheWay: []structured.DeviceID{id("whole"), id("half-0"), id("half-1")}},
		"partitions for administrators": {slices: partitioned("4", part("whole", "4"), part("half-0", "2")), others: all{given("half-0", asAdmin)}, chosen: all{given("whole")}},
		"groups":                        {slices: partitioned("4", part("half-0", "2", "x"), part("half-1", "2", "y")), others: all{given("half-0")}, chosen: all{given("half-1")}, device: "half-1", reason: "shares counters with devices in use, and too little of them is left", stale: true, inTheWay: []structured.DeviceID{id("half-0"), id("half-1")}},
		"shares of a partition":         {slices: sharedParts, others: all{given("half", aShare("1", "0"))}, chosen: all{given("half", aShare("2", "0"))}},
		"shares of one are in the way":  {slices: sharedParts, others: all{given("half", aShare("1", "0"))}, chosen: all{given("whole")}, device: "whole", reason: "shares counters with devices in use, and too little of them is left", stale: true, inTheWay: []structured.DeviceID{id("whole"), id("half")}},
		"incomplete":                    {slices: partitioned("4", part("whole", "4"))[1:], chosen: all{given("whole")}, device: "whole", reason: "is a partition in a pool of which not all slices are published", stale: true},
		"incomplete and in use":         {slices: partitioned("4", part("whole", "4"))[1:], others: all{given("whole")}, chosen: all{given("whole")}, device: "whole", reason: "is in use"},
		"incomplete, no partition":      {slices: []*sliceBuilder{slice("1", newDevice("a", nil)).pool("pool-1", 1, 2)}, chosen: all{given("a")}},
		"invalid":                       {slices: []*sliceBuilder{slice("1", part("whole", "4")).pool("pool-1", 1, 1)}, chosen: all{given("whole")}, device: "whole", reason: "is a partition in an invalid pool: counter set gpu not found", stale: true},
		"former generation":             {slices: []*sliceBuilder{slice("1", part("whole", "4")).pool("pool-1", 1, 1), slice("2", newDevice("whole", nil)).pool("pool-1", 2, 1)}, chosen: all{given("whole")}},
	} {
		t.Run(name, func(t *testing.T) {
			others := AllocatedTo(nil, CountingFeatures())
			AddAllocated(&others, test.others, CountingFeatures())
			got := poolOf(test.slices...).Beside(others, test.chosen)
			if test.device == "" {
				require.Nil(t, got)
				return
			}
			if test.inTheWay == nil {
				test.inTheWay = []structured.DeviceID{id(test.device)}
			}
			require.Equal(t, &Overlap{Device: id(test.device), Reason: test.reason, Stale: test.stale, InTheWay: test.inTheWay}, got)
		})
	}
}

func TestPublishedPoolKnowsItsDevices(t *testing.T) {
	pool := poolOf(partitioned("4", part("whole", "4"))...)
	require.True(t, pool.Has("whole"))
	require.False(t, pool.Has("half"))
	require.True(t, pool.Partitioned())
	require.False(t, poolOf(slice("1", newDevice("a", nil)).pool("pool-1", 1, 1)).Partitioned())
	require.False(t, poolOf().Has("a"))
}

// What a search has found can be had beside what was allocated before: both count alike.
func TestFoundIsBeside(t *testing.T) {
	found := 0
	cases.Until(t, cases.Of(50, 1000), func() bool { return found > 0 }, func(rt *rapid.T) {
		s := randomScenario(rt)
		results, err := s.allocate(t)
		if err != nil || results == nil {
			return
		}
		found++
		var all []resourceapi.DeviceRequestAllocationResult
		for _, result := range results {
			all = append(all, result.Devices.Results...)
		}
		require.Nil(rt, poolOf(s.slices...).Beside(s.state(), all), "%v", all)
	})
}
