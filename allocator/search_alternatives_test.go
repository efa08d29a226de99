// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

func TestPrioritizedLists(t *testing.T) {
	four := []*sliceBuilder{slice("1", ring(4)...)}
	for name, test := range map[string]struct {
		inUse []string
		claim *claimBuilder
		want  []string
	}{
		"first":                       {nil, claim("c").firstAvailable("x", sub("two", 2), sub("one", 1)), []string{"x/two=mla-0", "x/two=mla-1"}},
		"second":                      {[]string{"mla-0", "mla-1", "mla-3"}, claim("c").firstAvailable("x", sub("two", 2), sub("one", 1)), []string{"x/one=mla-2"}},
		"last":                        {nil, claim("c").firstAvailable("x", sub("nine", 9), sub("none", 1, "false"), sub("eight", 8), sub("one", 1)), []string{"x/one=mla-0"}},
		"none":                        {nil, claim("c").firstAvailable("x", sub("nine", 9), sub("none", 1, "false")), nil},
		"nothing is wanted":           {nil, claim("c").firstAvailable("x", sub("nine", 9), sub("nothing", 0)).want("y", 1), []string{"y=mla-0"}},
		"what comes after must fit":   {nil, claim("c").firstAvailable("x", sub("four", 4), sub("two", 2)).want("y", 1), []string{"x/two=mla-0", "x/two=mla-1", "y=mla-2"}},
		"what was before stays":       {nil, claim("c").want("y", 3).firstAvailable("x", sub("two", 2), sub("one", 1)), []string{"y=mla-0", "y=mla-1", "y=mla-2", "x/one=mla-3"}},
		"last list first":             {nil, claim("c").firstAvailable("x", sub("two", 2), sub("one", 1)).firstAvailable("y", sub("three", 3), sub("one", 1)), []string{"x/two=mla-0", "x/two=mla-1", "y/one=mla-2"}},
		"earlier list if need be":     {nil, claim("c").firstAvailable("x", sub("three", 3), sub("two", 2)).firstAvailable("y", sub("four", 4), sub("two", 2)), []string{"x/two=mla-0", "x/two=mla-1", "y/two=mla-2", "y/two=mla-3"}},
		"alternative before device":   {nil, claim("c").want("y", 1).firstAvailable("x", sub("zero", 1, index+" == 0"), sub("one", 1, index+" == 1")), []string{"y=mla-0", "x/one=mla-1"}},
		"device if no alternative":    {nil, claim("c").want("y", 1).firstAvailable("x", sub("zero", 1, index+" == 0"), sub("none", 1, "false")), []string{"y=mla-1", "x/zero=mla-0"}},
		"all":                         {nil, claim("c").firstAvailable("x", subAll("high", index+" > 1"), sub("one", 1)), []string{"x/high=mla-2", "x/high=mla-3"}},
		"all, in use":                 {[]string{"mla-3"}, claim("c").firstAvailable("x", subAll("high", index+" > 1"), sub("one", 1)), []string{"x/one=mla-0"}},
		"all, partly taken":           {nil, claim("c").want("y", 1, index+" == 3").firstAvailable("x", subAll("high", index+" > 1"), sub("one", 1, index+" > 1")), []string{"y=mla-3", "x/one=mla-2"}},
		"all of nothing":              {nil, claim("c").firstAvailable("x", subAll("none", "false"), sub("one", 1)), []string{"x/one=mla-0"}},
		"all as last":                 {nil, claim("c").firstAvailable("x", sub("nine", 9), subAll("all")), []string{"x/all=mla-0", "x/all=mla-1", "x/all=mla-2", "x/all=mla-3"}},
		"constraint names request":    {nil, claim("c").firstAvailable("x", sub("two", 2), sub("one", 1)).want("y", 1).match(driver+"/index", "x"), []string{"x/one=mla-0", "y=mla-1"}},
		"constraint names both":       {nil, claim("c").firstAvailable("x", sub("two", 2), sub("one", 1)).match(driver+"/index", "x/two", "x/one"), []string{"x/one=mla-0"}},
		"constraint names one":        {nil, claim("c").firstAvailable("x", sub("two", 2), sub("three", 3)).match(driver+"/index", "x/two"), []string{"x/three=mla-0", "x/three=mla-1", "x/three=mla-2"}},
		"constraint names other":      {nil, claim("c").firstAvailable("x", sub("two", 2), sub("three", 3)).match(driver+"/index", "x/three"), []string{"x/two=mla-0", "x/two=mla-1"}},
		"constraint names no request": {nil, claim("c").firstAvailable("x", sub("two", 2), sub("three", 3)).match(driver+"/index", "two"), []string{"x/two=mla-0", "x/two=mla-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: four, inUse: test.inUse, claims: []*claimBuilder{test.claim}}
			s.requireDevices(t, test.want...)
			s.opts = []Option{WithExhaustiveSearch()}
			s.requireDevices(t, test.want...)
		})
	}
}

// The claims before one are given other devices and alternatives, too.
func TestPrioritizedListsOverClaims(t *testing.T) {
	four := []*sliceBuilder{slice("1", ring(4)...)}
	scenario{slices: four, claims: []*claimBuilder{
		claim("a").firstAvailable("x", sub("four", 4), sub("three", 3), sub("two", 2)),
		claim("b").firstAvailable("y", sub("three", 3), sub("two", 2)),
	}}.requireDevices(t, "x/two=mla-0", "x/two=mla-1", "y/two=mla-2", "y/two=mla-3")
}

// What is not tried can't fail. What is wrong without any device fails before.
func TestAlternativesAreLazy(t *testing.T) {
	four := []*sliceBuilder{slice("1", ring(4)...)}
	const failing = "1 / 0 == 1"
	scenario{slices: four, claims: []*claimBuilder{claim("c").firstAvailable("x", sub("one", 1), sub("failing", 1, failing))}}.requireDevices(t, "x/one=mla-0")
	scenario{slices: four, claims: []*claimBuilder{claim("c").firstAvailable("x", sub("nine", 9), sub("failing", 1, failing))}}.requireError(t, "division by zero")
	scenario{slices: four, claims: []*claimBuilder{claim("c").firstAvailable("x", sub("one", 1), subAll("failing", failing))}}.requireError(t, "division by zero")
	scenario{slices: four, claims: []*claimBuilder{claim("c").firstAvailable("x", subAll("all"), sub("one", 1)).match(driver + "/index")}}.
		requireError(t, "claim default/c, request x/all: cannot add device mla.example.com/pool-1/mla-1 because a claim constraint would not be satisfied")
}

// Alternatives have tolerations and a class of their own, but never admin access.
func TestAlternativeInResult(t *testing.T) {
	tolerant := subOf("other", "tolerant", 1)
	tolerant.Tolerations = []resourceapi.DeviceToleration{{Key: "sick", Operator: resourceapi.DeviceTolerationOpExists}}
	results, err := scenario{
		classes: []*resourceapi.DeviceClass{classOf("other")},
		slices:  []*sliceBuilder{slice("1", withTaints("sick", resourceapi.DeviceTaintEffectNoSchedule))},
		claims:  []*claimBuilder{claim("c").firstAvailable("x", sub("strict", 1), tolerant)},
	}.allocate(t)
	require.NoError(t, err)
	require.Equal(t, []resourceapi.DeviceRequestAllocationResult{
		{Request: "x/tolerant", Driver: driver, Pool: "pool-1", Device: "sick", Tolerations: tolerant.Tolerations},
	}, results[0].Devices.Results)
}

// A claim has at most 32 devices. An alternative that would make it more is left
// out, whatever the devices of the requests before: they are not tried.
func TestClaimLimitOfAlternatives(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{slice("1", ring(40)...)}}
	for name, test := range map[string]struct {
		claims []*claimBuilder
		// want is the number of devices for each request.
		want  map[string]int
		steps int64
	}{
		"the largest": {[]*claimBuilder{claim("c").firstAvailable("x", sub("33", 33), sub("32", 32))}, map[string]int{"x/32": 32}, 34},
		"beside another request": {
			[]*claimBuilder{claim("c").want("y", 20).firstAvailable("x", sub("20", 20), sub("12", 12))}, map[string]int{"y": 20, "x/12": 12}, 34,
		},
		"an earlier list": {
			[]*claimBuilder{claim("c").firstAvailable("x", sub("30", 30), sub("10", 10)).want("y", 20)}, map[string]int{"x/10": 10, "y": 20}, 63,
		},
		"of the lists the last that can": {
			[]*claimBuilder{claim("c").firstAvailable("x", sub("20", 20), sub("1", 1)).firstAvailable("y", sub("31", 31), sub("13", 13))},
			map[string]int{"x/1": 1, "y/31": 31}, 55,
		},
		"two lists before": {
			[]*claimBuilder{claim("c").firstAvailable("x", sub("11", 11), sub("2", 2)).firstAvailable("y", sub("11", 11), sub("2", 2)).firstAvailable("z", sub("11", 11))},
			map[string]int{"x/11": 11, "y/2": 2, "z/11": 11}, 48,
		},
		"all": {[]*claimBuilder{claim("c").want("y", 1).firstAvailable("x", subAll("all"), sub("one", 1))}, map[string]int{"y": 1, "x/one": 1}, 4},
		"the next claim has its own": {
			[]*claimBuilder{claim("c").want("x", 20), claim("d").firstAvailable("y", sub("33", 33), sub("20", 20))}, map[string]int{"x": 20, "y/20": 20}, 43,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.claims = test.claims
			for _, opts := range [][]Option{nil, {WithExhaustiveSearch()}} {
				s.opts = opts
				a := s.allocator(t)
				results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
				require.NoError(t, err)
				got := map[string]int{}
				for _, result := range results {
					for _, d := range result.Devices.Results {
						got[d.Request]++
					}
				}
				require.Equal(t, test.want, got)
				require.LessOrEqual(t, a.Stats().Steps, test.steps)
			}
		})
	}
}

func TestClaimLimitOfSmallestAlternatives(t *testing.T) {
	scenario{
		slices: []*sliceBuilder{slice("1", ring(40)...)},
		claims: []*claimBuilder{claim("c").firstAvailable("x", sub("40", 40), sub("30", 30)).firstAvailable("y", sub("4", 4), sub("3", 3), sub("5", 5))},
	}.requireError(t, "claim default/c, request y/3: adding 3 devices exceeds the claim limit of 32, with 30 already accounted for")
}

// Trying an alternative is undone like taking a device.
func TestDecisionsUndo(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(3)...)},
		claims: []*claimBuilder{claim("c").firstAvailable("x", sub("two", 2), sub("one", 1)).want("y", 2, index+" > 0").cel("never", "y").define("never", unread)},
	}.search(t)
	found, err := s.run()
	require.NoError(t, err)
	require.False(t, found)
	requireUntouched(t, s)
	require.Equal(t, int64(1), s.celConstraints[0].evaluations, "x must take mla-0 only")
}
