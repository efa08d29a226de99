// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

func TestReasons(t *testing.T) {
	six := slice("1", ring(6)...)
	tainted := slice("1", ring(4)...)
	tainted.Spec.Devices[1].Taints = []resourceapi.DeviceTaint{{Key: "k", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	scattered := slice("1", ring(12)...)
	scatteredInUse := []string{"mla-1", "mla-3", "mla-5", "mla-7", "mla-9", "mla-11"} // six left, no two in a row
	for name, test := range map[string]struct {
		slice  *sliceBuilder
		inUse  []string
		claims []*claimBuilder
		want   string
	}{
		"too few": {
			slice("1", ring(3)...), nil, []*claimBuilder{claim("c").want("mla", 4)}, "request mla: 3 of 4 devices",
		},
		"too few are free": {
			six, []string{"mla-0", "mla-2", "mla-4"}, []*claimBuilder{claim("c").want("mla", 4)}, "request mla: 3 of 4 devices",
		},
		"too few are selected": {
			six, nil, []*claimBuilder{claim("c").want("mla", 4, index+" < 2")}, "request mla: 2 of 4 devices",
		},
		"too few are usable": {
			tainted, nil, []*claimBuilder{claim("c").want("mla", 4)}, "request mla: 3 of 4 devices",
		},
		"binding conditions can't be had": {
			slice("1", newDevice("a", nil), newDevice("b", nil, func(d *resourceapi.Device) { d.BindingConditions = []string{"ready"} })),
			nil, []*claimBuilder{claim("c").want("mla", 2)}, "request mla: 1 of 2 devices",
		},
		"second request": {
			six, nil, []*claimBuilder{claim("c").want("some", 2).want("many", 3, index+" > 4")}, "request many: 1 of 3 devices",
		},
		"no device at all": {slice("1"), nil, []*claimBuilder{claim("c").want("mla", 1)}, "request mla: 0 of 1 devices"},
		"claim is named if there are several": {
			six, nil, []*claimBuilder{claim("a").want("x", 1), claim("b").want("y", 2, index+" > 4")}, "claim b, request y: 1 of 2 devices",
		},
		"all of nothing": {
			six, nil, []*claimBuilder{claim("c").wantAll("mla", index+" > 7")}, "request mla: no device matches, all are wanted",
		},
		"all but one": {
			six, []string{"mla-3"}, []*claimBuilder{claim("c").wantAll("mla")}, "request mla: 5 of 6 devices, all are wanted",
		},
		"no set satisfies": {
			scattered, scatteredInUse, []*claimBuilder{claim("c").want("mla", 4).cel("ring4").define("ring4", inARow)},
			"constraint ring4: no set of 4 free devices satisfies it",
		},
		"no set satisfies, several claims": {
			scattered, scatteredInUse, []*claimBuilder{claim("a"), claim("b").want("mla", 4).cel("ring4").define("ring4", inARow)},
			"claim b, constraint ring4: no set of 4 free devices satisfies it",
		},
		"of those selected": {
			six, nil, []*claimBuilder{claim("c").want("mla", 2, index+" % 2 == 0").cel("pair").define("pair", inARow)},
			"constraint pair: no set of 2 free devices satisfies it",
		},
		"of those that another constraint leaves": {
			six, nil, []*claimBuilder{claim("c").want("mla", 2).match(driver+"/index").cel("pair").define("pair", inARow)},
			"constraint pair: no set that the rest of the claim leaves satisfies it",
		},
		"some are refused by another constraint first": {
			colored("red", "red", "blue"), nil, []*claimBuilder{claim("c").want("mla", 2).match(color).cel("never").define("never", "false")},
			"constraint never: no set that the rest of the claim leaves satisfies it",
		},
		"over several requests": {
			slice("1", ring(3)...), nil, []*claimBuilder{claim("c").want("x", 1).want("y", 1).cel("never").define("never", "false")},
			"constraint never: no set that the rest of the claim leaves satisfies it",
		},
		"satisfied, but the rest is not": {
			slice("1", ring(3)...), nil, []*claimBuilder{claim("c").want("x", 2).want("y", 2).cel("row", "x").define("row", inARow)},
			"constraint row: no set that satisfies it fits the rest of the claims",
		},
		"second of two constraints": {
			slice("1", ring(3)...), nil, []*claimBuilder{claim("c").want("x", 2).cel("row").cel("never").define("row", inARow).define("never", "false")},
			"constraint never: no set that the rest of the claim leaves satisfies it",
		},
		"no alternative": {
			six, nil, []*claimBuilder{claim("c").firstAvailable("x", sub("many", 7), sub("none", 1, index+" > 7"), subAll("all", index+" > 8"))},
			"request x/many: 6 of 7 devices; request x/none: 0 of 1 devices; request x/all: no device matches, all are wanted",
		},
		"an alternative": {
			six, nil, []*claimBuilder{claim("c").firstAvailable("x", sub("many", 7), sub("one", 1)).cel("never").define("never", "false")},
			"constraint never: no set that the rest of the claim leaves satisfies it",
		},
		"too little capacity": {
			slice("1", gpu("a", "1Gi"), gpu("b", "4Gi")), nil, []*claimBuilder{claim("c").want("x", 2).capacity("memory", "2Gi")}, "request x: 1 of 2 devices",
		},
		"too few can be shared": {
			slice("1", gpu("a", "1Gi")), nil, []*claimBuilder{claim("c").want("x", 1).want("y", 1)},
			"no combination of free devices meets all requests and constraints",
		},
		"second of two claims with constraints": {
			six, nil, []*claimBuilder{
				claim("a").want("x", 1).cel("always").define("always", "true"), claim("b").want("y", 1).cel("never").define("never", "false"),
			},
			"claim b, constraint never: no set that the rest of the claim leaves satisfies it",
		},
		"satisfied, but the rest of the claims is not": {
			slice("1", ring(2)...), nil, []*claimBuilder{
				claim("a").want("x", 1), claim("b").want("y", 1).cel("always", "y").define("always", "true").want("z", 1),
			},
			"claim b, constraint always: no set that satisfies it fits the rest of the claims",
		},
		"not together": {
			slice("1", ring(2)...), nil, []*claimBuilder{claim("c").want("x", 1).want("y", 2)},
			"no combination of free devices meets all requests and constraints",
		},
		"what the search did not look at is not counted": {
			six, []string{"mla-5"}, []*claimBuilder{claim("c").want("x", 1).want("y", 7, index+" >= 0").cel("never", "x").define("never", "false")},
			"constraint never: no set of 1 free devices satisfies it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			features := allOn
			features.DeviceBindingAndStatus = false
			s := scenario{features: &features, slices: []*sliceBuilder{test.slice}, inUse: test.inUse, claims: test.claims, opts: []Option{WithReasons()}}
			s.requireErrorOnNode(t, test.want)
			s.opts = nil
			s.requireNone(t)
		})
	}
}

// A reason evaluates nothing that the search did not get to.
func TestReasonEvaluatesNothing(t *testing.T) {
	scenario{
		slices: []*sliceBuilder{slice("1", ring(3)...)},
		claims: []*claimBuilder{claim("c").want("x", 4).want("y", 1, "1 / 0 == 1")},
		opts:   []Option{WithReasons()},
	}.requireErrorOnNode(t, "request x: 3 of 4 devices")
}

func TestReasonWithAdminAccess(t *testing.T) {
	scenario{
		slices: []*sliceBuilder{slice("1", ring(3)...)},
		inUse:  []string{"mla-0"},
		claims: []*claimBuilder{claim("c").want("x", 4).admin()},
		opts:   []Option{WithReasons()},
	}.requireErrorOnNode(t, "request x: 3 of 4 devices")
}
