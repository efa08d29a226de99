// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/policy"
)

func TestSharedCounters(t *testing.T) {
	whole, left, right := part("whole", "80Gi"), part("left", "40Gi"), part("right", "40Gi")
	for name, test := range map[string]struct {
		scenario
		want []string
	}{
		"one":               {scenario{slices: partitioned("80Gi", whole, left, right), claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=whole"}},
		"the two that fit":  {scenario{slices: partitioned("80Gi", whole, left, right), claims: []*claimBuilder{claim("c").want("x", 2)}}, []string{"x=left", "x=right"}},
		"three don't":       {scenario{slices: partitioned("80Gi", whole, left, right), claims: []*claimBuilder{claim("c").want("x", 3)}}, nil},
		"over requests":     {scenario{slices: partitioned("80Gi", whole, left, right), claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1)}}, []string{"x=left", "y=right"}},
		"over claims":       {scenario{slices: partitioned("80Gi", whole, left, right), claims: []*claimBuilder{claim("c").want("x", 1), claim("d").want("y", 1)}}, []string{"x=left", "y=right"}},
		"allocated":         {scenario{slices: partitioned("80Gi", whole, left, right), inUse: []string{"right"}, claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=left"}},
		"none is left":      {scenario{slices: partitioned("80Gi", whole, left, right), inUse: []string{"whole"}, claims: []*claimBuilder{claim("c").want("x", 1)}}, nil},
		"all":               {scenario{slices: partitioned("160Gi", whole, left, right), claims: []*claimBuilder{claim("c").wantAll("x")}}, []string{"x=whole", "x=left", "x=right"}},
		"all, too many":     {scenario{slices: partitioned("80Gi", whole, left, right), claims: []*claimBuilder{claim("c").wantAll("x")}}, nil},
		"admin access too":  {scenario{slices: partitioned("80Gi", whole, left, right), inUse: []string{"whole"}, claims: []*claimBuilder{claim("c").want("x", 1).admin()}}, nil},
		"others are not":    {scenario{slices: partitioned("80Gi", whole, left, newDevice("free", nil)), inUse: []string{"whole"}, claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=free"}},
		"not published any": {scenario{slices: partitioned("80Gi", whole), inUse: []string{"gone"}, claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=whole"}},
	} {
		t.Run(name, func(t *testing.T) { test.requireDevices(t, test.want...) })
	}
}

// Devices for other nodes consume the same counters.
func TestCountersOfDevicesElsewhere(t *testing.T) {
	far := slice("far", part("far", "40Gi")).pool("pool-1", 1, 3).onNode("node-2")
	near := slice("near", part("whole", "80Gi"), part("left", "40Gi")).pool("pool-1", 1, 3)
	s := scenario{
		slices: []*sliceBuilder{providing("counters", map[string]amounts{"gpu": {"memory": "80Gi"}}).pool("pool-1", 1, 3), near, far},
		claims: []*claimBuilder{claim("c").want("x", 1)},
	}
	s.requireDevices(t, "x=whole")
	s.inUse = []string{"far"}
	s.requireDevices(t, "x=left")

	// In a slice for several nodes devices for others are seen as well.
	s.slices = append(partitioned("80Gi"),
		slice("devices", newDevice("far", nil, elsewhere, consuming("gpu", amounts{"memory": "40Gi"})),
			newDevice("whole", nil, onAny, consuming("gpu", amounts{"memory": "80Gi"})),
			newDevice("left", nil, onAny, consuming("gpu", amounts{"memory": "40Gi"})),
		).pool("pool-1", 1, 2).perDevice())
	s.slices = append(s.slices[:1], s.slices[2:]...)
	s.requireDevices(t, "x=left")
	s.inUse = nil
	s.requireDevices(t, "x=whole")
}

// A counter that is exceeded, by whatever, blocks all of the pool that consume
// some counter.
func TestOvercommittedCounters(t *testing.T) {
	sets := map[string]amounts{"gpu": {"memory": "80Gi"}, "link": {"lanes": "4"}}
	s := scenario{
		slices: []*sliceBuilder{
			providing("counters", sets),
			slice("devices",
				part("first", "80Gi"), part("second", "80Gi"), newDevice("link", nil, consuming("link", amounts{"lanes": "1"})), newDevice("free", nil),
			).pool("pool-1", 1, 2),
			slice("other", newDevice("other", nil)).pool("pool-2", 1, 1),
		},
		inUse:  []string{"first"},
		claims: []*claimBuilder{claim("c").want("x", 1)},
	}
	s.requireDevices(t, "x=link")
	s.inUse = []string{"first", "second"}
	s.requireDevices(t, "x=free")
	s.claims = []*claimBuilder{claim("c").want("x", 3)}
	s.requireNone(t)
}

// A shared device consumes its counters once, however many shares it has.
func TestCountersOfSharedDevices(t *testing.T) {
	sharedPart := newDevice("shared", nil, shared, consuming("gpu", amounts{"memory": "40Gi"}))
	devices := partitioned("80Gi", sharedPart, part("whole", "80Gi"), part("right", "40Gi"))
	for name, test := range map[string]struct {
		scenario
		want []string
	}{
		"first share": {scenario{slices: devices, claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1, "!device.allowMultipleAllocations")}}, []string{"x=shared", "y=right"}},
		"further shares of this search": {
			scenario{slices: devices, claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1).want("z", 1).want("r", 1, "!device.allowMultipleAllocations")}},
			[]string{"x=shared", "y=shared", "z=shared", "r=right"},
		},
		"shares of others": {
			scenario{slices: devices, shares: []share{{device: "shared"}}, claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1, "!device.allowMultipleAllocations")}},
			[]string{"x=shared", "y=right"},
		},
		"capacity of others": {
			scenario{slices: partitioned("80Gi", newDevice("shared", nil, shared, policy.Having("memory", "4", policy.Default("1")), consuming("gpu", amounts{"memory": "80Gi"}))),
				shares: []share{{device: "shared", consumed: map[string]string{"memory": "1"}, unnamed: true}}, claims: []*claimBuilder{claim("c").want("x", 1)}},
			[]string{"x=shared"},
		},
		"further share although the pool is blocked": {
			scenario{slices: devices, shares: []share{{device: "shared"}}, inUse: []string{"whole"}, claims: []*claimBuilder{claim("c").want("x", 1)}},
			[]string{"x=shared"},
		},
		"first share would exceed": {
			scenario{slices: devices, inUse: []string{"whole"}, claims: []*claimBuilder{claim("c").want("x", 1)}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) { test.requireDevices(t, test.want...) })
	}
}

// Whatever refuses a device after its counters were taken gives them back.
func TestCountersAreGivenBack(t *testing.T) {
	red := func(d *resourceapi.Device) {
		d.Attributes["color"] = resourceapi.DeviceAttribute{StringValue: new(string)}
	}
	tainted := func(d *resourceapi.Device) {
		d.Taints = []resourceapi.DeviceTaint{{Key: "sick", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	}
	edited := func(d resourceapi.Device, edit func(*resourceapi.Device)) resourceapi.Device {
		edit(&d)
		return d
	}
	for name, test := range map[string]struct {
		scenario
		want []string
	}{
		"taint":      {scenario{slices: partitioned("80Gi", edited(part("a", "80Gi"), tainted), part("b", "80Gi")), claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=b"}},
		"constraint": {scenario{slices: partitioned("80Gi", part("a", "80Gi"), edited(part("b", "80Gi"), red)), claims: []*claimBuilder{claim("c").want("x", 1).match(color)}}, []string{"x=b"}},
		"capacity": {
			scenario{
				slices: partitioned("80Gi", edited(part("a", "80Gi"), policy.Having("memory", "1", nil)), edited(part("b", "80Gi"), policy.Having("memory", "2", nil))),
				claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "2")},
			},
			[]string{"x=b"},
		},
		"backtracking": {
			scenario{slices: partitioned("80Gi", part("a", "40Gi"), part("b", "80Gi"), part("c", "10Gi")), claims: []*claimBuilder{claim("c").want("x", 1).want("y", 2)}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) { test.requireDevices(t, test.want...) })
	}
}

func TestCounters(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{
		providing("counters", map[string]amounts{"gpu": {"memory": "80", "cores": "4"}, "link": {"lanes": "2"}}),
		slice("devices",
			newDevice("used", nil, consuming("gpu", amounts{"memory": "30"})),
			newDevice("a", nil, consuming("gpu", amounts{"memory": "20", "cores": "3"}), consuming("link", amounts{"lanes": "2"})),
			newDevice("b", nil, consuming("gpu", amounts{"memory": "20", "cores": "2"})),
			newDevice("c", nil, consuming("gpu", amounts{"memory": "31"})),
		).pool("pool-1", 1, 2),
	}, inUse: []string{"used"}}.search(t)
	c := s.available.CountersOf(s.inventory.Candidates[0].Pool)
	require.Same(t, c, s.available.CountersOf(s.inventory.Candidates[0].Pool))
	requireLeft := func(memory, cores, lanes int64) {
		t.Helper()
		requireQuantities(t, c.Left("gpu"), map[string]int64{"memory": memory, "cores": cores})
		requireQuantities(t, c.Left("link"), map[string]int64{"lanes": lanes})
	}
	requireLeft(50, 4, 2)
	a, b, d := s.inventory.Candidates[1].Device, s.inventory.Candidates[2].Device, s.inventory.Candidates[3].Device
	require.True(t, c.Take(a))
	requireLeft(30, 1, 0)
	require.False(t, c.Take(b), "cores")
	require.False(t, c.Take(d), "memory")
	requireLeft(30, 1, 0)
	c.GiveBack(a)
	requireLeft(50, 4, 2)
	require.True(t, c.Take(b))
	require.False(t, c.Take(d))
	c.GiveBack(b)
	require.True(t, c.Take(d))
	requireLeft(19, 4, 2)
	published := s.inventory.Candidates[0].Pool.CounterSets["gpu"]["memory"]
	require.Equal(t, "80", published.Value.String(), "the slice is not changed")
}

func requireQuantities(t *testing.T, got map[string]resource.Quantity, want map[string]int64) {
	t.Helper()
	require.Len(t, got, len(want))
	for name, amount := range want {
		require.Zero(t, ptr.To(got[name]).CmpInt64(amount), name)
	}
}
