// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/internal/testing/policy"
)

// gpu is a shared device with memory, of which 1Gi is consumed by default.
func gpu(name, memory string) resourceapi.Device {
	return newDevice(name, nil, shared, policy.Having("memory", memory, policy.Default("1Gi")))
}

func TestSharedDevices(t *testing.T) {
	one := []*sliceBuilder{slice("1", gpu("a", "10Gi"))}
	two := []*sliceBuilder{slice("1", gpu("a", "10Gi"), gpu("b", "10Gi"))}
	for name, test := range map[string]struct {
		scenario
		want []string
	}{
		"several requests":         {scenario{slices: one, claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1)}}, []string{"x=a", "y=a"}},
		"several claims":           {scenario{slices: one, claims: []*claimBuilder{claim("c").want("x", 1), claim("d").want("y", 1)}}, []string{"x=a", "y=a"}},
		"once in a request":        {scenario{slices: two, claims: []*claimBuilder{claim("c").want("x", 2)}}, []string{"x=a", "x=b"}},
		"not twice in a request":   {scenario{slices: one, claims: []*claimBuilder{claim("c").want("x", 2)}}, nil},
		"as long as there is room": {scenario{slices: two, claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "6Gi").want("y", 1).capacity("memory", "5Gi").want("z", 1).capacity("memory", "4Gi")}}, []string{"x=a", "y=b", "z=a"}},
		"no room":                  {scenario{slices: one, claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "6Gi").want("y", 1).capacity("memory", "5Gi")}}, nil},
		"beside others":            {scenario{slices: two, shares: []share{{device: "a", consumed: map[string]string{"memory": "8Gi"}}}, claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "2Gi").want("y", 1)}}, []string{"x=a", "y=b"}},
		"consumed by others":       {scenario{slices: one, shares: []share{{device: "a", consumed: map[string]string{"memory": "8Gi"}}}, claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "3Gi")}}, nil},
		"in use exclusively":       {scenario{slices: two, inUse: []string{"a"}, claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=b"}},
		"earlier request makes room": {
			scenario{
				slices: []*sliceBuilder{slice("1", gpu("a", "10Gi"), gpu("b", "4Gi"))},
				claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "3Gi").want("y", 1).capacity("memory", "8Gi")},
			},
			[]string{"x=b", "y=a"},
		},
		"all, room is left":          {scenario{slices: two, shares: []share{{device: "b", consumed: map[string]string{"memory": "9Gi"}}}, claims: []*claimBuilder{claim("c").wantAll("x")}}, []string{"x=a", "x=b"}},
		"all, no room is left":       {scenario{slices: two, shares: []share{{device: "b", consumed: map[string]string{"memory": "10Gi"}}}, claims: []*claimBuilder{claim("c").wantAll("x")}}, nil},
		"all that are large enough":  {scenario{slices: []*sliceBuilder{slice("1", gpu("a", "4Gi"), gpu("b", "10Gi"))}, claims: []*claimBuilder{claim("c").wantAll("x").capacity("memory", "5Gi")}}, []string{"x=b"}},
		"admin access":               {scenario{slices: one, claims: []*claimBuilder{claim("c").want("x", 1).admin().want("y", 1).admin()}}, []string{"x=a", "y=a"}},
		"admin access, no room":      {scenario{slices: one, shares: []share{{device: "a", consumed: map[string]string{"memory": "10Gi"}}}, claims: []*claimBuilder{claim("c").want("x", 1).admin()}}, nil},
		"without capacity":           {scenario{slices: []*sliceBuilder{slice("1", newDevice("a", nil, shared))}, claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1)}}, []string{"x=a", "y=a"}},
		"capacity is unknown":        {scenario{slices: []*sliceBuilder{slice("1", newDevice("a", nil, shared), gpu("b", "1Gi"))}, claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "1Gi")}}, []string{"x=b"}},
		"nothing requested":          {scenario{slices: one, claims: []*claimBuilder{claim("c").want("x", 1).edit(func(r *resourceapi.ExactDeviceRequest) { r.Capacity = &resourceapi.CapacityRequirements{} })}}, []string{"x=a"}},
		"all is consumed by default": {scenario{slices: []*sliceBuilder{slice("1", newDevice("a", nil, shared, policy.Having("memory", "10Gi", nil)))}, claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1)}}, nil},
		// Not shared, but it must have the capacity.
		"exclusive device":            {scenario{slices: []*sliceBuilder{slice("1", newDevice("small", nil, policy.Having("memory", "1Gi", nil)), newDevice("large", nil, policy.Having("memory", "9Gi", nil)))}, claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "2Gi")}}, []string{"x=large"}},
		"exclusive device, policy":    {scenario{slices: []*sliceBuilder{slice("1", newDevice("a", nil, policy.Having("memory", "9", policy.Range("1", "2", ""))), newDevice("b", nil))}, claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=b"}},
		"exclusive device, all of it": {scenario{slices: []*sliceBuilder{slice("1", newDevice("a", nil, policy.Having("memory", "9", nil)))}, claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1)}}, nil},
	} {
		t.Run(name, func(t *testing.T) { test.requireDevices(t, test.want...) })
	}
}

// Without the feature a device that allows multiple allocations is one like all
// others, and has no capacity.
func TestSharedDevicesWithoutTheFeature(t *testing.T) {
	s := scenario{
		features: with(func(f *structured.Features) { f.ConsumableCapacity = false }),
		slices:   []*sliceBuilder{slice("1", newDevice("a", nil, shared, policy.Having("memory", "1", policy.Range("2", "", ""))), newDevice("b", nil))},
		claims:   []*claimBuilder{claim("c").want("x", 1).want("y", 1)},
	}
	s.requireDevices(t, "x=a", "y=b")
	results, err := s.allocate(t)
	require.NoError(t, err)
	require.Nil(t, results[0].Devices.Results[0].ShareID)
	require.Nil(t, results[0].Devices.Results[0].ConsumedCapacity)
}

func TestCapacityErrors(t *testing.T) {
	devices := []*sliceBuilder{slice("1", newDevice("a", nil), newDevice("b", nil, shared, policy.Having("memory", "10", policy.Range("1", "", "1"))))}
	for name, test := range map[string]struct {
		claim   *claimBuilder
		message string
	}{
		"exact count": {
			claim("c").want("x", 1).capacity("memory", "1e19"),
			`claim default/c, request x: checking capacity for device mla.example.com/pool-1/b: capacity "memory": capacity request cannot be represented in the device's range arithmetic: request 10e18`,
		},
		"all": {
			claim("c").wantAll("x").capacity("memory", "1e19"),
			`claim default/c, request x: checking capacity for device b: capacity "memory": capacity request cannot be represented in the device's range arithmetic: request 10e18`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario{slices: devices, claims: []*claimBuilder{test.claim}}.requireError(t, test.message)
		})
	}
	t.Run("not reached", func(t *testing.T) {
		scenario{slices: devices, claims: []*claimBuilder{claim("c").want("y", 1)}}.requireDevices(t, "y=a")
		scenario{
			slices: devices, inUse: []string{"b"}, claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "1e19")},
		}.requireNone(t)
	})
}

func TestResultsOfSharedDevices(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1",
			newDevice("a", nil, shared, policy.Having("memory", "10", policy.WithDefault("1", policy.Range("1", "", "3"))), policy.Having("cores", "4", policy.Default("2"))),
			newDevice("b", nil, shared), newDevice("c", nil, policy.Having("memory", "1", nil)),
		)},
		claims: []*claimBuilder{
			claim("c").want("x", 1).capacity("memory", "2").want("y", 1, "!device.allowMultipleAllocations"), claim("d").want("z", 2),
		},
	}
	results, err := s.allocate(t)
	require.NoError(t, err)
	require.Equal(t, []string{"x=a", "y=c", "z=a", "z=b"}, devicesOf(results))
	x, y, za, zb := results[0].Devices.Results[0], results[0].Devices.Results[1], results[1].Devices.Results[0], results[1].Devices.Results[1]
	require.Empty(t, cmp.Diff(map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("4"), "cores": resource.MustParse("2")}, x.ConsumedCapacity))
	require.Empty(t, cmp.Diff(map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1"), "cores": resource.MustParse("2")}, za.ConsumedCapacity))
	require.Nil(t, y.ConsumedCapacity, "not shared")
	require.Nil(t, zb.ConsumedCapacity, "no capacity")
	require.Nil(t, y.ShareID)
	ids := sets.New(*x.ShareID, *za.ShareID, *zb.ShareID)
	require.Len(t, ids, 3, "each share has an id of its own")
	require.False(t, ids.Has(types.UID("")))

	again, err := s.allocate(t)
	require.NoError(t, err)
	require.False(t, ids.Has(*again[0].Devices.Results[0].ShareID))
}

// The shares of a search are a stack for each device.
func TestSharesUndo(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", gpu("a", "10Gi"))},
		claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "6Gi").want("y", 1).capacity("memory", "4Gi").want("z", 1)},
	}.search(t)
	a, x, y, z := s.inventory.Candidates[0], s.requests[0][0][0], s.requests[0][1][0], s.requests[0][2][0]
	take := func(r *request, want bool) {
		t.Helper()
		_, taken, err := s.take(0, r, a)
		require.NoError(t, err)
		require.Equal(t, want, taken)
	}
	require.False(t, s.available.IsShared(a))
	take(x, true)
	require.True(t, s.available.IsShared(a))
	take(y, true)
	take(z, false)
	s.giveBack()
	take(z, true)
	take(y, false)
	s.giveBack()
	s.giveBack()
	require.False(t, s.available.IsShared(a))
	requireUntouched(t, s)
	take(z, true)
}

func TestInUse(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", newDevice("used", nil), newDevice("free", nil))},
		inUse:  []string{"used"},
		claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1).admin()},
	}.search(t)
	used, free, x, y := s.inventory.Candidates[0], s.inventory.Candidates[1], s.requests[0][0][0], s.requests[0][1][0]
	inUse := func(claim int, r *request, c *inventory.Candidate) bool {
		return s.available.InUse(claim, &r.Request, c)
	}
	require.Equal(t, []bool{true, false, false, false}, []bool{inUse(0, x, used), inUse(0, y, used), inUse(0, x, free), inUse(0, y, free)})
	require.NoError(t, s.available.Mark(0, &y.Request, free, &availability.Reservation{}))
	require.True(t, inUse(0, x, free))
	require.True(t, inUse(1, x, free))
	require.True(t, inUse(0, y, free), "no device twice in a claim")
	require.False(t, inUse(1, y, free))
	s.available.Unmark(free)
	require.False(t, inUse(0, x, free))
}
