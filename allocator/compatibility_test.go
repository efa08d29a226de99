// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"k8s.io/dynamic-resource-allocation/structured"
)

func TestCompatibilityGroups(t *testing.T) {
	g, h, both, none := part("g", "1", "g"), part("h", "1", "h"), part("both", "1", "g", "h"), part("none", "1")
	g2, h2, none2 := part("g2", "1", "g"), part("h2", "1", "h"), part("none2", "1")
	for name, test := range map[string]struct {
		scenario
		want []string
	}{
		"alone":                       {scenario{slices: partitioned("9", g), claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=g"}},
		"same group":                  {scenario{slices: partitioned("9", g, h, g2), claims: []*claimBuilder{claim("c").want("x", 2)}}, []string{"x=g", "x=g2"}},
		"overlapping":                 {scenario{slices: partitioned("9", both, g, h), claims: []*claimBuilder{claim("c").want("x", 2)}}, []string{"x=both", "x=g"}},
		"all must have one in common": {scenario{slices: partitioned("9", g, both, h), claims: []*claimBuilder{claim("c").want("x", 3)}}, nil},
		"without groups":              {scenario{slices: partitioned("9", none, g, none2), claims: []*claimBuilder{claim("c").want("x", 2)}}, []string{"x=none", "x=none2"}},
		"with and without":            {scenario{slices: partitioned("9", g, none), claims: []*claimBuilder{claim("c").want("x", 2)}}, nil},
		"over requests":               {scenario{slices: partitioned("9", g, h, g2), claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1)}}, []string{"x=g", "y=g2"}},
		"over claims":                 {scenario{slices: partitioned("9", g, h, g2), claims: []*claimBuilder{claim("c").want("x", 1), claim("d").want("y", 1)}}, []string{"x=g", "y=g2"}},
		"allocated":                   {scenario{slices: partitioned("9", g, h, h2), inUse: []string{"h"}, claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=h2"}},
		"allocated without groups":    {scenario{slices: partitioned("9", g, none, none2), inUse: []string{"none"}, claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=none2"}},
		"allocated ones narrow":       {scenario{slices: partitioned("9", both, h, g, h2), inUse: []string{"both", "h"}, claims: []*claimBuilder{claim("c").want("x", 1)}}, []string{"x=h2"}},
		"allocated ones don't match":  {scenario{slices: partitioned("9", g, h, g2, h2, both, none), inUse: []string{"g", "h"}, claims: []*claimBuilder{claim("c").want("x", 1)}}, nil},
		"earlier request makes room":  {scenario{slices: partitioned("9", g, h, h2), claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1)}}, []string{"x=h", "y=h2"}},
		"no counters left":            {scenario{slices: partitioned("1", g, g2), claims: []*claimBuilder{claim("c").want("x", 2)}}, nil},
		"all":                         {scenario{slices: partitioned("9", g, both), claims: []*claimBuilder{claim("c").wantAll("x")}}, []string{"x=g", "x=both"}},
		"all, not compatible":         {scenario{slices: partitioned("9", g, h), claims: []*claimBuilder{claim("c").wantAll("x")}}, nil},
	} {
		t.Run(name, func(t *testing.T) { test.requireDevices(t, test.want...) })
	}
}

// Only devices that consume the same counter set must be compatible.
func TestCompatibilityIsPerCounterSet(t *testing.T) {
	one := amounts{"memory": "1"}
	s := scenario{
		slices: []*sliceBuilder{
			providing("counters", map[string]amounts{"gpu": {"memory": "9"}, "other": {"memory": "9"}}),
			slice("devices",
				newDevice("a", nil, consuming("gpu", one, "g")),
				newDevice("b", nil, consuming("other", one, "h")),
				newDevice("c", nil, consuming("gpu", one, "g"), consuming("other", one, "g")),
				newDevice("d", nil, consuming("gpu", one, "g"), consuming("other", one, "h")),
				newDevice("e", nil),
			).pool("pool-1", 1, 2),
		},
		claims: []*claimBuilder{claim("c").want("x", 4)},
	}
	s.requireDevices(t, "x=a", "x=b", "x=d", "x=e")
}

// A further share of a device changes nothing for others.
func TestCompatibilityOfSharedDevices(t *testing.T) {
	sharedPart := part("shared", "1", "g")
	shared(&sharedPart)
	s := scenario{
		slices: partitioned("9", sharedPart, part("h", "1", "h")),
		// That is what upstream does too: nothing is asked for the second share.
		inUse:  []string{"h"},
		shares: []share{{device: "shared"}},
		claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1)},
	}
	s.requireDevices(t, "x=shared", "y=shared")
	s.shares = nil
	s.requireNone(t)
}

// Without the feature a pool with groups is not complete.
func TestCompatibilityGroupsWithoutTheFeature(t *testing.T) {
	s := scenario{
		features: with(func(f *structured.Features) { f.CompatibilityGroups = false }),
		slices:   partitioned("9", part("g", "1", "g"), part("none", "1")),
		claims:   []*claimBuilder{claim("c").want("x", 1)},
	}
	s.requireNone(t)
	s.slices = partitioned("9", part("a", "1"), part("b", "1"))
	s.requireDevices(t, "x=a")
}
