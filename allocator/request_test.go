// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

func TestExactCount(t *testing.T) {
	for name, test := range map[string]struct {
		count int64
		inUse []string
		want  []string
	}{
		"first ones":      {count: 2, want: []string{"mla=mla-0", "mla=mla-1"}},
		"all there are":   {count: 4, want: []string{"mla=mla-0", "mla=mla-1", "mla=mla-2", "mla=mla-3"}},
		"one too many":    {count: 5},
		"those in use":    {count: 2, inUse: []string{"mla-0", "mla-2"}, want: []string{"mla=mla-1", "mla=mla-3"}},
		"too many in use": {count: 3, inUse: []string{"mla-0", "mla-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: []*sliceBuilder{slice("1", ring(4)...)}, claims: []*claimBuilder{claim("c").want("mla", test.count)}, inUse: test.inUse}
			s.requireDevices(t, test.want...)
		})
	}
}

func TestCountZeroOrLessIsNothing(t *testing.T) {
	for _, count := range []int64{0, -1, math.MinInt64} {
		scenario{slices: []*sliceBuilder{slice("1", ring(1)...)}, claims: []*claimBuilder{claim("c").want("none", count).want("one", 1)}}.
			requireDevices(t, "one=mla-0")
	}
}

func TestAll(t *testing.T) {
	two := []*sliceBuilder{slice("1", ring(2)...)}
	for name, test := range map[string]struct {
		scenario
		want []string
	}{
		"all": {
			scenario{slices: two, claims: []*claimBuilder{claim("c").wantAll("mla")}},
			[]string{"mla=mla-0", "mla=mla-1"},
		},
		"all that match": {
			scenario{slices: two, claims: []*claimBuilder{claim("c").wantAll("mla", index+" == 1")}},
			[]string{"mla=mla-1"},
		},
		"of several pools": {
			scenario{
				slices: []*sliceBuilder{slice("1", ring(2)...).pool("b", 1, 1), slice("2", newDevice("x", nil)).pool("a", 1, 1)},
				claims: []*claimBuilder{claim("c").wantAll("mla")},
			},
			[]string{"mla=x", "mla=mla-0", "mla=mla-1"},
		},
		"none matches":             {scenario{slices: two, claims: []*claimBuilder{claim("c").wantAll("mla", index+" == 7")}}, nil},
		"no device":                {scenario{claims: []*claimBuilder{claim("c").wantAll("mla")}}, nil},
		"one in use":               {scenario{slices: two, inUse: []string{"mla-1"}, claims: []*claimBuilder{claim("c").wantAll("mla")}}, nil},
		"one taken before":         {scenario{slices: two, claims: []*claimBuilder{claim("c").want("one", 1).wantAll("mla")}}, nil},
		"one taken by other claim": {scenario{slices: two, claims: []*claimBuilder{claim("a").want("one", 1), claim("b").wantAll("mla")}}, nil},
		"one in use, admin access": {
			scenario{slices: two, inUse: []string{"mla-1"}, claims: []*claimBuilder{claim("c").wantAll("mla").admin()}},
			[]string{"mla=mla-0", "mla=mla-1"},
		},
		"earlier request makes room": {
			scenario{slices: two, claims: []*claimBuilder{claim("c").want("one", 1).wantAll("mla", index+" == 0")}},
			[]string{"one=mla-1", "mla=mla-0"},
		},
	} {
		t.Run(name, func(t *testing.T) { test.requireDevices(t, test.want...) })
	}
}

func TestAllRefusesPoolsItCannotSee(t *testing.T) {
	// The request wants nothing of that pool: nobody can tell yet.
	all := []*claimBuilder{claim("c").wantAll("mla", "device.driver == 'other.example.com'")}
	scenario{slices: []*sliceBuilder{slice("1", ring(1)...).pool("p", 1, 2)}, claims: all}.
		requireError(t, "claim default/c, request mla: asks for all devices, but resource pool mla.example.com/p is currently being updated")
	scenario{slices: []*sliceBuilder{slice("1", newDevice("a", nil), newDevice("a", nil))}, claims: all}.
		requireError(t, "claim default/c, request mla: asks for all devices, but resource pool mla.example.com/pool-1 is currently invalid")
}

func TestClaimLimit(t *testing.T) {
	many := []*sliceBuilder{slice("1", ring(40)...)}
	t.Run("32 devices", func(t *testing.T) {
		var want []string
		for _, d := range ring(32) {
			want = append(want, "mla="+d.Name)
		}
		scenario{slices: many, claims: []*claimBuilder{claim("c").want("mla", 32)}}.requireDevices(t, want...)
	})
	for name, test := range map[string]struct {
		claim   *claimBuilder
		message string
	}{
		"one request":        {claim("c").want("a", 33), "request a: adding 33 devices exceeds the claim limit of 32, with 0 already accounted for"},
		"sum":                {claim("c").want("a", 30).want("b", 3), "request b: adding 3 devices exceeds the claim limit of 32, with 30 already accounted for"},
		"all":                {claim("c").want("a", 1).wantAll("b"), "request b: adding 40 devices exceeds the claim limit of 32, with 1 already accounted for"},
		"sum would overflow": {claim("c").want("a", 1).want("b", math.MaxInt64), "request b: adding 9223372036854775807 devices exceeds the claim limit of 32, with 1"},
	} {
		t.Run(name, func(t *testing.T) {
			scenario{slices: many, claims: []*claimBuilder{test.claim}}.requireError(t, "claim default/c, "+test.message)
		})
	}
	t.Run("each claim has its own", func(t *testing.T) {
		results, err := scenario{slices: many, claims: []*claimBuilder{claim("a").want("x", 20), claim("b").want("y", 20)}}.allocate(t)
		require.NoError(t, err)
		require.Len(t, devicesOf(results), 40)
	})
}

func TestAdminAccess(t *testing.T) {
	three := []*sliceBuilder{slice("1", ring(3)...)}
	for name, test := range map[string]struct {
		scenario
		want []string
	}{
		"devices in use": {
			scenario{slices: three, inUse: []string{"mla-0"}, claims: []*claimBuilder{claim("c").want("mla", 1).admin()}},
			[]string{"mla=mla-0"},
		},
		"no device twice in a claim": {
			scenario{slices: three, claims: []*claimBuilder{claim("c").want("a", 2).admin().want("b", 1).admin()}},
			[]string{"a=mla-0", "a=mla-1", "b=mla-2"},
		},
		"no device left in the claim": {
			scenario{slices: three, claims: []*claimBuilder{claim("c").want("a", 2).admin().want("b", 2).admin()}}, nil,
		},
		"same device in two claims": {
			scenario{slices: three, claims: []*claimBuilder{claim("a").want("x", 1).admin(), claim("b").want("y", 1).admin()}},
			[]string{"x=mla-0", "y=mla-0"},
		},
		"not for a normal request after it": {
			scenario{slices: three, claims: []*claimBuilder{claim("a").want("x", 1).admin(), claim("b").want("y", 1)}},
			[]string{"x=mla-0", "y=mla-1"},
		},
		"device of a normal request of another claim": {
			scenario{slices: three, claims: []*claimBuilder{claim("a").want("x", 1), claim("b").want("y", 1).admin()}},
			[]string{"x=mla-0", "y=mla-0"},
		},
		"false is as good as nothing": {
			scenario{slices: three, inUse: []string{"mla-0"}, claims: []*claimBuilder{claim("c").want("mla", 1).
				edit(func(r *resourceapi.ExactDeviceRequest) { r.AdminAccess = ptr.To(false) })}},
			[]string{"mla=mla-1"},
		},
	} {
		t.Run(name, func(t *testing.T) { test.requireDevices(t, test.want...) })
	}
}

func TestRequestErrors(t *testing.T) {
	alternatives := claim("c").firstAvailable("mla", sub("large", 1))
	capacityOff := with(func(f *structured.Features) { f.ConsumableCapacity, f.FractionalCapacityRange = false, false })
	unlimited := sub("large", 1)
	unlimited.Capacity = &resourceapi.CapacityRequirements{}
	neither := claim("c").want("mla", 1)
	neither.Spec.Devices.Requests[0].Exactly = nil
	edited := func(edit func(*resourceapi.ExactDeviceRequest)) *claimBuilder {
		return claim("c").want("mla", 1).edit(edit)
	}
	capacity := claim("c").want("mla", 1).capacity("memory", "1")
	derived := claim("c").want("mla", 1).derive(color, "'red'")
	for name, test := range map[string]struct {
		claim    *claimBuilder
		features *structured.Features
		request  string // "mla" if empty
		message  string
	}{
		"subrequests":             {claim: alternatives, features: with(func(f *structured.Features) { f.PrioritizedList = false }), message: "has subrequests, but the DRAPrioritizedList feature is disabled"},
		"neither":                 {claim: neither, message: "neither exactly nor firstAvailable is set"},
		"capacity":                {claim: capacity, features: capacityOff, message: "has capacity requests, but the DRAConsumableCapacity feature is disabled"},
		"capacity of subrequest":  {claim: claim("c").firstAvailable("mla", sub("small", 1), unlimited), features: capacityOff, message: "has capacity requests, but the DRAConsumableCapacity feature is disabled"},
		"derived attributes":      {claim: derived, features: with(func(f *structured.Features) { f.DerivedAttributes = false }), message: "cannot handle request with derived attributes, the feature is disabled"},
		"class of subrequest":     {claim: claim("c").firstAvailable("mla", sub("small", 1), subOf("unknown", "large", 1)), request: "mla/large", message: "could not retrieve device class unknown: "},
		"admin access off":        {claim: claim("c").want("mla", 1).admin(), features: with(func(f *structured.Features) { f.AdminAccess = false }), message: "admin access is requested, but the feature is disabled"},
		"admin access off, false": {claim: edited(func(r *resourceapi.ExactDeviceRequest) { r.AdminAccess = ptr.To(false) }), features: with(func(f *structured.Features) { f.AdminAccess = false }), message: "admin access is requested"},
		"selector":                {claim: edited(func(r *resourceapi.ExactDeviceRequest) { r.Selectors = make([]resourceapi.DeviceSelector, 1) }), message: "selector #0: CEL expression empty (unsupported selector type?)"},
		"no class name":           {claim: claim("c").want("mla", 1).class(""), message: "missing device class name (unsupported request type?)"},
		"no class":                {claim: claim("c").want("mla", 1).class("unknown"), message: `could not retrieve device class unknown: deviceclasses.resource.k8s.io "unknown" not found`},
		"mode":                    {claim: edited(func(r *resourceapi.ExactDeviceRequest) { r.AllocationMode = "Some" }), message: "unsupported count mode Some"},
	} {
		t.Run(name, func(t *testing.T) {
			// No device is needed to find out.
			scenario{claims: []*claimBuilder{test.claim}, features: test.features}.requireError(t, "claim default/c, request "+cmp.Or(test.request, "mla")+": "+test.message)
		})
	}
}
