// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/internal/testing/policy"
)

// asked is how a scenario is answered with a cache. known tells whether nothing was
// searched.
func (s scenario) asked(t testing.TB, cache *Cache, opts ...Option) (a answer, known bool) {
	t.Helper()
	a, stats := s.answer(t, append([]Option{WithCache(cache)}, opts...)...)
	if stats.Steps == 0 {
		require.EqualValues(t, 1, stats.CacheHits)
		require.Zero(t, stats.Evaluations)
		require.Zero(t, stats.TableEvaluations)
	}
	return a, stats.Steps == 0
}

// requireRight demands that the answer is the one of a search without any cache.
func (s scenario) requireRight(t testing.TB, got answer, opts ...Option) {
	t.Helper()
	want, _ := s.answer(t, opts...)
	require.Empty(t, cmp.Diff(want, got, cmp.AllowUnexported(answer{})))
	exhaustive, _ := s.answer(t, append([]Option{WithExhaustiveSearch()}, opts...)...)
	require.Empty(t, cmp.Diff(exhaustive.withoutReason(), got.withoutReason(), cmp.AllowUnexported(answer{})))
}

// rowOfThree has six devices and a claim for three of them.
func rowOfThree() scenario {
	return scenario{
		slices: []*sliceBuilder{slice("1", ring(6)...)},
		claims: []*claimBuilder{claim("c").want("mla", 3).cel("row").define("row", inARow+" && devices.slice(0, 1).size() == 1")},
	}
}

// variation changes a scenario.
type variation struct {
	change func(*scenario)
	opts   []Option
}

// Everything that an answer depends on makes it another question.
func TestAnswersAreKeptApart(t *testing.T) {
	device := func(edit func(*resourceapi.Device)) func(*scenario) {
		return func(s *scenario) { edit(&s.slices[0].Spec.Devices[1]) }
	}
	request := func(edit func(*resourceapi.ExactDeviceRequest)) func(*scenario) {
		return func(s *scenario) { s.claims[0].edit(edit) }
	}
	tolerating := request(func(r *resourceapi.ExactDeviceRequest) {
		r.Tolerations = []resourceapi.DeviceToleration{{Operator: resourceapi.DeviceTolerationOpExists}}
	})
	class := func(edit func(*resourceapi.DeviceClass)) func(*scenario) {
		return func(s *scenario) {
			c := classOf(driver)
			edit(c)
			s.classes = append(s.classes, c)
		}
	}
	// What a key does not tell, and errors.
	notKept := sets.New("shared", "shares", "share of no shared", "tainted", "binding conditions", "counters", "all nodes", "incomplete", "invalid",
		"operations", "selector fails", "steps", "cost", "environment")
	for name, v := range map[string]variation{
		"count":    {change: request(func(r *resourceapi.ExactDeviceRequest) { r.Count = 2 })},
		"all":      {change: request(func(r *resourceapi.ExactDeviceRequest) { r.AllocationMode = resourceapi.DeviceAllocationModeAll })},
		"selector": {change: request(func(r *resourceapi.ExactDeviceRequest) { r.Selectors = celSelectors([]string{index + " > 1"}) })},
		"selector fails": {change: request(func(r *resourceapi.ExactDeviceRequest) {
			r.Selectors = celSelectors([]string{"1 / " + index + " == 1"})
		})},
		"admin access": {change: request(func(r *resourceapi.ExactDeviceRequest) { r.AdminAccess = ptr.To(true) })},
		"tolerations":  {change: tolerating},
		"capacity":     {change: func(s *scenario) { s.claims[0].capacity("memory", "1Gi") }},
		"request name": {change: func(s *scenario) { s.claims[0].Spec.Devices.Requests[0].Name = "other" }},
		"expression": {change: func(s *scenario) {
			s.claims[0] = claim("c").want("mla", 3).cel("row").define("row", indices+".sum() > 9")
		}},
		"constraint":    {change: func(s *scenario) { s.claims[0].match(driver + "/index") }},
		"configuration": {change: func(s *scenario) { s.claims[0].configure(opaque("{}")) }},
		"second claim": {change: func(s *scenario) {
			s.claims = append(s.claims, claim("d").want("one", 1).cel("any").define("any", "true"))
		}},
		"class selectors": {change: class(func(c *resourceapi.DeviceClass) { c.Spec.Selectors = celSelectors([]string{index + " != 1"}) })},
		"class configuration": {change: class(func(c *resourceapi.DeviceClass) {
			c.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: opaque("{}")}}
		})},
		"in use":      {change: func(s *scenario) { s.inUse = []string{"mla-1"} }},
		"more in use": {change: func(s *scenario) { s.inUse = []string{"mla-1", "mla-4"} }},
		"last in use": {change: func(s *scenario) { s.inUse = []string{"mla-5"} }},
		"features":    {change: func(s *scenario) { s.features = listsOn }},
		"attribute": {change: device(func(d *resourceapi.Device) {
			d.Attributes["index"] = resourceapi.DeviceAttribute{IntValue: ptr.To[int64](9)}
		})},
		"capacity of a device": {change: device(policy.Having("memory", "1Gi", nil))},
		"shared":               {change: device(shared)},
		"shares":               {change: func(s *scenario) { shared(&s.slices[0].Spec.Devices[0]); s.shares = []share{{device: "mla-0"}} }},
		"share of no shared":   {change: func(s *scenario) { s.shares = []share{{device: "mla-0"}} }},
		"tainted": {change: device(func(d *resourceapi.Device) {
			d.Taints = []resourceapi.DeviceTaint{{Key: "sick", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		})},
		"binding conditions": {change: device(func(d *resourceapi.Device) { d.BindingConditions = []string{"ready"} })},
		"counters": {change: func(s *scenario) {
			s.slices = partitioned("1Gi", newDevice("mla-0", attrs{"index": 0}, consuming("gpu", amounts{"memory": "1Gi"})), newDevice("mla-1", attrs{"index": 1}))
		}},
		"all nodes":   {change: func(s *scenario) { s.slices[0].everywhere() }},
		"incomplete":  {change: func(s *scenario) { s.slices[0].pool("pool-1", 1, 2) }},
		"invalid":     {change: device(func(d *resourceapi.Device) { d.Name = "mla-0" })},
		"operations":  {change: func(s *scenario) { s.slices[0].Spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{"x"} }},
		"steps":       {opts: []Option{WithStepBudget(2)}},
		"more steps":  {opts: []Option{WithStepBudget(1000)}},
		"cost":        {opts: []Option{WithCostBudget(1)}},
		"cost enough": {opts: []Option{WithCostBudget(1 << 30)}},
		"environment": {opts: []Option{WithEnvironment(environmentWith(t, cel.Config{CostLimit: 10}))}},
	} {
		t.Run(name, func(t *testing.T) {
			cache := NewCache()
			original := rowOfThree()
			_, known := original.asked(t, cache)
			require.False(t, known)
			_, known = original.asked(t, cache)
			require.True(t, known, "it was answered before")

			varied := rowOfThree()
			if v.change != nil {
				v.change(&varied)
			}
			for _, again := range []bool{false, true} {
				got, known := varied.asked(t, cache, v.opts...)
				require.Equal(t, again && !notKept.Has(name), known)
				varied.requireRight(t, got, v.opts...)
			}
			// The other way round.
			cache = NewCache()
			_, known = varied.asked(t, cache, v.opts...)
			require.False(t, known)
			got, known := original.asked(t, cache)
			require.False(t, known)
			original.requireRight(t, got)
		})
	}
}

// opaque is a configuration for a driver.
func opaque(parameters string) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(parameters)},
	}}
}

// Names make no difference: not those of nodes, pools and devices, nor those of claims.
func TestAnswersAreSharedByNodes(t *testing.T) {
	renamed := rowOfThree()
	renamed.slices[0].onNode("node-2").pool("pool-2", 3, 1)
	renamed.slices[0].Name = "2"
	for i := range renamed.slices[0].Spec.Devices {
		renamed.slices[0].Spec.Devices[i].Name = string(rune('u' + i))
	}
	renamed.node = newNode("node-2", "big")
	renamed.inUse = []string{"mla-0"} // of another pool
	renamed.claims[0].Name, renamed.claims[0].Namespace = "d", "elsewhere"

	cache := NewCache()
	got, known := rowOfThree().asked(t, cache)
	require.False(t, known)
	require.Equal(t, []string{"mla=mla-0", "mla=mla-1", "mla=mla-2"}, devicesOf(got.Results))
	got, known = renamed.asked(t, cache)
	require.True(t, known)
	require.Equal(t, []string{"mla=u", "mla=v", "mla=w"}, devicesOf(got.Results))
	require.Equal(t, "pool-2", got.Results[0].Devices.Results[0].Pool)
	require.Equal(t, "node-2", got.Results[0].NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0])
	renamed.requireRight(t, got)
}

// An answer that is known has all that it had when it was searched: each claim its own
// requests, of prioritized lists the one that was chosen, and the configuration.
func TestKnownAnswersAreComplete(t *testing.T) {
	big := classOf("big", index+" > 3")
	big.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: opaque(`{"of":"class"}`)}}
	for name, claims := range map[string]func() []*claimBuilder{
		"second alternative": func() []*claimBuilder {
			return []*claimBuilder{claim("c").firstAvailable("x", sub("nine", 9), sub("two", 2)).cel("row").define("row", inARow).
				configure(opaque(`{"for":"nine"}`), "x/nine").configure(opaque(`{"for":"two"}`), "x/two").configure(opaque(`{"for":"x"}`), "x")}
		},
		"several requests": func() []*claimBuilder {
			return []*claimBuilder{claim("c").want("last", 1, index+" == 5").want("none", 0).want("first", 2).cel("row", "first").define("row", inARow).
				configure(opaque(`{"for":"first"}`), "first")}
		},
		"several claims": func() []*claimBuilder {
			return []*claimBuilder{
				claim("a").firstAvailable("x", sub("six", 6), sub("one", 1)).want("y", 1).cel("high").define("high", indices+".sum() > 7"),
				claim("b").want("z", 1).class("big").firstAvailable("v", sub("nine", 9), sub("two", 2), sub("one", 1)).cel("low", "v").define("low", indices+".sum() < 2"),
				claim("e").cel("any").define("any", "true"),
			}
		},
		"all": func() []*claimBuilder {
			return []*claimBuilder{claim("c").wantAll("x", index+" < 3").cel("row").define("row", inARow)}
		},
		"administers": func() []*claimBuilder {
			return []*claimBuilder{claim("c").want("x", 2).admin().cel("row").define("row", inARow)}
		},
		"not found": func() []*claimBuilder {
			return []*claimBuilder{claim("c").want("x", 2).cel("never").define("never", "devices.exists(d, false)")}
		},
		"too few": func() []*claimBuilder {
			return []*claimBuilder{claim("c").want("x", 9).cel("row").define("row", inARow)}
		},
		"not found, several claims": func() []*claimBuilder {
			return []*claimBuilder{claim("a").want("x", 5).cel("row").define("row", inARow), claim("b").want("y", 3).cel("row").define("row", inARow)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cache := NewCache()
			s := scenario{slices: []*sliceBuilder{slice("1", ring(6)...)}, classes: []*resourceapi.DeviceClass{big}, claims: claims()}
			first, known := s.asked(t, cache)
			require.False(t, known)
			s.requireRight(t, first)

			s.slices = []*sliceBuilder{slice("2", ring(6)...).onNode("node-2").pool("pool-2", 1, 1)}
			s.node, s.claims = newNode("node-2"), claims()
			second, known := s.asked(t, cache)
			require.True(t, known)
			s.requireRight(t, second)
			require.Equal(t, devicesOf(first.Results), devicesOf(second.Results))
		})
	}
}

// The claim that a reason names is the one at hand.
func TestKnownReasonsNameTheClaim(t *testing.T) {
	s := func(first, second string) scenario {
		return scenario{slices: []*sliceBuilder{slice("1", ring(3)...)}, claims: []*claimBuilder{
			claim(first).want("x", 1).cel("any").define("any", "true"), claim(second).want("y", 5).cel("any").define("any", "true"),
		}}
	}
	cache := NewCache()
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}, {"a", "bc"}, {"ab", "c"}} {
		for _, want := range []bool{false, true} {
			got, known := s(names[0], names[1]).asked(t, cache)
			require.Equal(t, want, known)
			require.Contains(t, got.Err, "claim "+names[1]+", request y: 3 of 5 devices")
		}
	}
}

// Whether reasons are wanted is part of the question.
func TestAnswersWithAndWithoutReasons(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(3)...)},
		claims: []*claimBuilder{claim("c").want("x", 2).cel("never").define("never", "devices.exists(d, false)")},
	}
	cache := NewCache()
	for range 2 {
		s.opts = []Option{WithCache(cache)}
		s.requireNone(t)
		s.opts = []Option{WithCache(cache), WithReasons()}
		s.requireErrorOnNode(t, "constraint never: no set of 2 free devices satisfies it"+structured.ErrFailedAllocationOnNode.Error())
	}
}

// An error is met again.
func TestErrorsAreNotKept(t *testing.T) {
	cache := NewCache()
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(3)...)},
		claims: []*claimBuilder{claim("c").want("x", 2).cel("broken").define("broken", "1 / 0 == 1")},
		opts:   []Option{WithCache(cache)},
	}
	for range 2 {
		a := s.allocator(t)
		_, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
		require.ErrorContains(t, err, "division by zero")
		require.EqualValues(t, 1, a.Stats().Evaluations)
	}
}

// A claim with parameters that were made in Go has no key, and an answer nevertheless. So
// has one with a class of which that is true.
func TestAnswersWithoutKey(t *testing.T) {
	made := opaque("{}")
	made.Opaque.Parameters = runtime.RawExtension{Object: &resourceapi.ResourceSlice{}}
	ofClaim, ofClass := rowOfThree(), rowOfThree()
	ofClaim.claims[0].configure(made)
	ofClass.classes = []*resourceapi.DeviceClass{classOf(driver)}
	ofClass.classes[0].Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: made}}
	for _, s := range []scenario{ofClaim, ofClass} {
		cache := NewCache()
		for range 2 {
			a := s.with(WithCache(cache)).allocator(t)
			results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
			require.NoError(t, err)
			require.Equal(t, []string{"mla=mla-0", "mla=mla-1", "mla=mla-2"}, devicesOf(results))
			require.Positive(t, a.Stats().Steps)
		}
	}
}
