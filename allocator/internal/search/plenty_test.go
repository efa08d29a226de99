// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// If hasPlenty returns true, the slower check of each device gives the same result and evaluates no further selector.
func TestPlentyIsEnough(t *testing.T) {
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(200, 1000), func(rt *rapid.T) {
		s := randomFreeDevices(rt).search(t)
		r := s.Requests[0][0][0]
		for _, c := range s.Inventory.Candidates {
			if !oneIn(rt, 3, "skipped") {
				continue
			}
			eligible, err := s.isEligible(0, r, c)
			require.NoError(rt, err)
			if eligible && len(s.Solution.Choices) < r.Count {
				_, _, err := s.take(0, r, c)
				require.NoError(rt, err)
			}
		}
		switch rapid.IntRange(0, 2).Draw(rt, "judged") {
		case 1:
			s.lookahead.evaluateSelectors(r)
		case 2:
			s.lookahead.evaluateSelectors(r)
			r.group.lookedAhead = false
		}
		from := rapid.IntRange(0, len(s.Inventory.Candidates)).Draw(rt, "from")
		p := point{device: len(s.Solution.Choices), from: from}
		wanted := rapid.IntRange(1, 70).Draw(rt, "wanted")
		plenty, known := s.lookahead.hasPlenty(p, r, wanted), slices.Clone(r.group.selectors.Judged())
		left, _ := s.lookahead.devicesLeft(p, r)
		enough, ordinary := s.lookahead.isEnough(r, left, wanted), 0
		for _, c := range left {
			if r.IsSimple(c) {
				ordinary++
			}
		}
		switch {
		case plenty:
			seen["plenty"]++
			require.True(rt, enough)
			require.Equal(rt, known, r.group.selectors.Judged())
		case ordinary >= wanted && len(r.bounding) == 0 && !r.AdminAccess() && slices.Equal(known, r.group.selectors.Judged()):
			rt.Fatal("there are plenty")
		case enough:
			seen["enough"]++
		default:
			seen["too few"]++
		}
	})
	require.Len(t, seen, 3, "the generator has lost an outcome: %v", seen)
}

// randomFreeDevices returns a scenario with one request and devices, some in use.
func randomFreeDevices(t *rapid.T) scenario {
	s := scenario{}
	devices := make([]resourceapi.Device, rapid.SampledFrom([]int{1, 5, 63, 64, 65, 127, 128, 129}).Draw(t, "devices"))
	inUse, others := rapid.IntRange(1, 10).Draw(t, "free, of ten"), rapid.Bool().Draw(t, "some are not ordinary")
	for i := range devices {
		devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"root": rapid.IntRange(0, 3).Draw(t, "root"), "kind": rapid.SampledFrom([]string{"gpu", "nic"}).Draw(t, "kind")})
		switch {
		case others && oneIn(t, 4, "shared"):
			shared(&devices[i])
		case others && oneIn(t, 4, "tainted"):
			devices[i].Taints = []resourceapi.DeviceTaint{{Key: "k", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		case rapid.IntRange(1, 10).Draw(t, "in use") > inUse:
			s.InUse = append(s.InUse, devices[i].Name)
		}
	}
	s.Slices = []*sliceBuilder{slice("1", devices...)}
	c := claim("c").Want("x", rapid.Int64Range(1, 32).Draw(t, "count"), rapid.SampledFrom([][]string{nil, {kind("gpu")}}).Draw(t, "selectors")...)
	if oneIn(t, 6, "admin") {
		c.Admin()
	}
	if oneIn(t, 4, "match") {
		c.Match("root")
	}
	if oneIn(t, 6, "capacity") {
		c.Capacity("memory", "1Gi")
	}
	s.Claims = []*claimBuilder{c}
	return s
}

// sameKind returns true for two requests only if the same devices are eligible for both.
func TestSameKind(t *testing.T) {
	plain := func() *claimBuilder { return claim("c").Want("x", 1, "true") }
	for name, test := range map[string]struct {
		other *claimBuilder
		same  bool
	}{
		"same":         {plain(), true},
		"count":        {claim("c").Want("x", 3, "true"), true},
		"all":          {claim("c").WantAll("x", "true"), true},
		"alternative":  {claim("c").FirstAvailable("x", sub("a", 1, "true")), true},
		"selectors":    {claim("c").Want("x", 1), false},
		"class":        {plain().Class("other"), false},
		"admin access": {plain().Admin(), false},
		"capacity":     {plain().Capacity("memory", "1"), false},
		"tolerations": {plain().Edit(func(r *resourceapi.ExactDeviceRequest) {
			r.Tolerations = []resourceapi.DeviceToleration{{Operator: resourceapi.DeviceTolerationOpExists}}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{Classes: []*resourceapi.DeviceClass{classOf("other")}, Claims: []*claimBuilder{plain(), test.other}}.search(t)
			one, other := s.Requests[0][0][0], s.Requests[1][0][0]
			require.Equal(t, test.same, sameKind(one, other))
			require.Equal(t, test.same, one.group == other.group)
		})
	}
}
