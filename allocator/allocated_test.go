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

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/policy"
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

// resultFor returns the allocation result for a device of pool-1.
func resultFor(device string, edit ...func(*resourceapi.DeviceRequestAllocationResult)) resourceapi.DeviceRequestAllocationResult {
	r := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: "pool-1", Device: device}
	for _, one := range edit {
		one(&r)
	}
	return r
}

// aShare returns a function that turns an allocation result into a share that consumes memory.
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
	plain := []*sliceBuilder{slice("1", newDevice("a", nil), newDevice("b", nil)).Pool("pool-1", 1, 1)}
	gpus := []*sliceBuilder{slice("1", newDevice("a", nil, shared, policy.Having("memory", "10Gi", policy.Default("1Gi")))).Pool("pool-1", 1, 1)}
	sharedParts := partitioned("4", part("whole", "4"), newDevice("half", nil, consuming("gpu", amounts{"memory": "2"}), shared))
	id := func(device string) structured.DeviceID { return structured.MakeDeviceID(driver, "pool-1", device) }
	for name, test := range map[string]struct {
		slices []*sliceBuilder
		others all
		chosen all
		// device and reason are empty if no device conflicts.
		device, reason string
		stale          bool
		inTheWay       []structured.DeviceID
	}{
		"free":                          {slices: plain, others: all{resultFor("a")}, chosen: all{resultFor("b")}},
		"in use":                        {slices: plain, others: all{resultFor("a")}, chosen: all{resultFor("b"), resultFor("a")}, device: "a", reason: "is in use"},
		"twice":                         {slices: plain, chosen: all{resultFor("a"), resultFor("a")}, device: "a", reason: "is in use"},
		"not published":                 {others: all{resultFor("a")}, chosen: all{resultFor("a")}, device: "a", reason: "is in use"},
		"not published and free":        {chosen: all{resultFor("a"), resultFor("b", aShare("1", "1"))}},
		"admin":                         {slices: plain, others: all{resultFor("a")}, chosen: all{resultFor("a", asAdmin)}},
		"beside admin":                  {slices: plain, others: all{resultFor("a", asAdmin)}, chosen: all{resultFor("a")}},
		"of another pool":               {slices: plain, others: all{resultFor("a")}, chosen: all{{Driver: driver, Pool: "pool-2", Device: "a"}, {Driver: "other", Pool: "pool-1", Device: "a"}}},
		"room for a share":              {slices: gpus, others: all{resultFor("a", aShare("1", "6Gi"))}, chosen: all{resultFor("a", aShare("2", "4Gi"))}},
		"no room for a share":           {slices: gpus, others: all{resultFor("a", aShare("1", "6Gi"))}, chosen: all{resultFor("a", aShare("2", "5Gi"))}, device: "a", reason: "has too little free capacity memory", stale: true},
		"no room for both":              {slices: gpus, chosen: all{resultFor("a", aShare("1", "6Gi")), resultFor("a", aShare("2", "5Gi"))}, device: "a", reason: "has too little free capacity memory", stale: true},
		"negative":                      {slices: gpus, chosen: all{resultFor("a", aShare("1", "-1"))}, device: "a", reason: "has too little free capacity memory", stale: true},
		"share of a whole":              {slices: gpus, others: all{resultFor("a")}, chosen: all{resultFor("a", aShare("2", "1Gi"))}, device: "a", reason: "is in use"},
		"whole with shares":             {slices: gpus, others: all{resultFor("a", aShare("1", "1"))}, chosen: all{resultFor("a")}, device: "a", reason: "can't be allocated as a whole, because other claims use shares of it"},
		"partitions":                    {slices: partitioned("4", part("whole", "4"), part("half-0", "2"), part("half-1", "2")), others: all{resultFor("half-0")}, chosen: all{resultFor("half-1")}},
		"partitions that others have":   {slices: partitioned("4", part("whole", "4"), part("half-0", "2"), part("half-1", "2")), others: all{resultFor("half-0")}, chosen: all{resultFor("whole")}, device: "whole", reason: "shares counters with devices in use, and these counters have too little left", stale: true, inTheWay: []structured.DeviceID{id("whole"), id("half-0"), id("half-1")}},
		"partitions for administrators": {slices: partitioned("4", part("whole", "4"), part("half-0", "2")), others: all{resultFor("half-0", asAdmin)}, chosen: all{resultFor("whole")}},
		"groups":                        {slices: partitioned("4", part("half-0", "2", "x"), part("half-1", "2", "y")), others: all{resultFor("half-0")}, chosen: all{resultFor("half-1")}, device: "half-1", reason: "shares counters with devices in use, and these counters have too little left", stale: true, inTheWay: []structured.DeviceID{id("half-0"), id("half-1")}},
		"shares of a partition":         {slices: sharedParts, others: all{resultFor("half", aShare("1", "0"))}, chosen: all{resultFor("half", aShare("2", "0"))}},
		"shares of one are in the way":  {slices: sharedParts, others: all{resultFor("half", aShare("1", "0"))}, chosen: all{resultFor("whole")}, device: "whole", reason: "shares counters with devices in use, and these counters have too little left", stale: true, inTheWay: []structured.DeviceID{id("whole"), id("half")}},
		"incomplete":                    {slices: partitioned("4", part("whole", "4"))[1:], chosen: all{resultFor("whole")}, device: "whole", reason: "is a partition in an incomplete pool: wait until the driver has published all ResourceSlices", stale: true},
		"incomplete and in use":         {slices: partitioned("4", part("whole", "4"))[1:], others: all{resultFor("whole")}, chosen: all{resultFor("whole")}, device: "whole", reason: "is in use"},
		"incomplete, no partition":      {slices: []*sliceBuilder{slice("1", newDevice("a", nil)).Pool("pool-1", 1, 2)}, chosen: all{resultFor("a")}},
		"invalid":                       {slices: []*sliceBuilder{slice("1", part("whole", "4")).Pool("pool-1", 1, 1)}, chosen: all{resultFor("whole")}, device: "whole", reason: "is a partition in an invalid pool: counter set gpu not found", stale: true},
		"former generation":             {slices: []*sliceBuilder{slice("1", part("whole", "4")).Pool("pool-1", 1, 1), slice("2", newDevice("whole", nil)).Pool("pool-1", 2, 1)}, chosen: all{resultFor("whole")}},
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
	require.False(t, poolOf(slice("1", newDevice("a", nil)).Pool("pool-1", 1, 1)).Partitioned())
	require.False(t, poolOf().Has("a"))
}

// A search and [PublishedPool] count allocations in the same way. So a search never finds devices that overlap with others.
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
		require.Nil(rt, poolOf(s.Slices...).Beside(s.State(), all), "%v", all)
	})
}

// claimsThatHave returns allocated claims, one for each device and each share in use in the scenario.
func (s scenario) claimsThatHave() []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	add := func(result resourceapi.DeviceRequestAllocationResult) {
		result.Request, result.Driver, result.Pool = "r", driver, "pool-1"
		claims = append(claims, &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{
			Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}}},
		}})
	}
	for _, name := range s.InUse {
		add(resourceapi.DeviceRequestAllocationResult{Device: name})
	}
	for _, share := range s.Shares {
		result := resourceapi.DeviceRequestAllocationResult{Device: share.Device, ShareID: ptr.To(types.UID(share.Device))}
		for name, amount := range share.Consumed {
			if result.ConsumedCapacity == nil {
				result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{}
			}
			result.ConsumedCapacity[resourceapi.QualifiedName(name)] = resource.MustParse(amount)
		}
		add(result)
	}
	return claims
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// After claims gave back their devices, a search finds the same devices as if the claims had never been allocated.
func TestWithoutIsAsIfNeverAllocated(t *testing.T) {
	found, gained := 0, 0
	check := func(rt *rapid.T) {
		s := randomScenario(rt)
		in := s.claimsThatHave()
		var stay, leave []*resourceapi.ResourceClaim
		for _, claim := range in {
			if oneIn(rt, 2, "goes") {
				leave = append(leave, claim)
			} else {
				stay = append(stay, claim)
			}
		}
		s.InUse, s.Shares = nil, nil
		all, rest := s.allocator(t), s.allocator(t)
		all.planner.State = availability.NewState(AllocatedTo(in, all.planner.Features))
		rest.planner.State = availability.NewState(AllocatedTo(stay, rest.planner.Features))
		want, wantErr := rest.Allocate(t.Context(), s.OnNode(), s.APIClaims())
		// Give back the devices of one claim after the other. Search before the first and after each.
		_, _ = all.Allocate(t.Context(), s.OnNode(), s.APIClaims())
		without := all
		for _, claim := range leave {
			without = without.Without(claim)
		}
		got, err := without.Allocate(t.Context(), s.OnNode(), s.APIClaims())
		require.Equal(t, devicesOf(want), devicesOf(got))
		require.Equal(t, text(wantErr), text(err))
		atOnce, err := all.Without(leave...).Allocate(t.Context(), s.OnNode(), s.APIClaims())
		require.Equal(t, devicesOf(want), devicesOf(atOnce))
		require.Equal(t, text(wantErr), text(err))
		if want != nil {
			found++
			if before, _ := all.Allocate(t.Context(), s.OnNode(), s.APIClaims()); before == nil {
				gained++
			}
		}
	}
	cases.CheckN(t, cases.Of(600, 3000), check)
	require.Positive(t, found)
	require.Positive(t, gained, "of %d that were found", found)
}

// A share is counted only once if it is added to a state that already contains it.
func TestSharesAreCountedOnce(t *testing.T) {
	share := resourceapi.DeviceRequestAllocationResult{
		Driver: "d", Pool: "p", Device: "chip", ShareID: ptr.To(types.UID("a")),
		ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"slots": resource.MustParse("3")},
	}
	other := share
	other.ShareID = ptr.To(types.UID("b"))
	state := AllocatedTo(nil, CountingFeatures())
	for range 2 {
		AddAllocated(&state, []resourceapi.DeviceRequestAllocationResult{share, other}, CountingFeatures())
	}
	require.Len(t, state.AllocatedSharedDeviceIDs, 2)
	require.Equal(t, "6", state.AggregatedCapacity[structured.MakeDeviceID("d", "p", "chip")]["slots"].String())
}
