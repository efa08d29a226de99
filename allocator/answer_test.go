// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/fixture"
)

// asked allocates the scenario's claims with a cache. known is true if the cache held the result, so that no search was needed.
func (s scenario) asked(t testing.TB, cache *Cache, opts ...option) (a response, known bool) {
	t.Helper()
	a, stats := s.answer(t, append([]option{WithCache(cache)}, opts...)...)
	if stats.Steps == 0 {
		require.EqualValues(t, 1, stats.CacheHits)
		require.Zero(t, stats.Evaluations)
		require.Zero(t, stats.TableEvaluations)
	}
	return a, stats.Steps == 0
}

// requireRight requires that a search without a cache returns the same result.
func (s scenario) requireRight(t testing.TB, got response, opts ...option) {
	t.Helper()
	want, _ := s.answer(t, opts...)
	require.Empty(t, cmp.Diff(want, got, cmp.AllowUnexported(response{})))
	exhaustive, _ := s.answer(t, append([]option{WithExhaustiveSearch()}, opts...)...)
	require.Empty(t, cmp.Diff(exhaustive.withoutReason(), got.withoutReason(), cmp.AllowUnexported(response{})))
}

// rowOfThree returns six devices and a claim for three devices in a row.
func rowOfThree() scenario {
	return scenario{fixture.Scenario{
		Slices: []*sliceBuilder{slice("1", ring(6)...)},
		Claims: []*claimBuilder{claim("c").Want("mla", 3).Cel("row").Define("row", inARow+" && devices.slice(0, 1).size() == 1")},
	}}
}

// A scenario does not get the cached result of another scenario if they differ in anything that affects the result.
func TestAnswersAreKeptApart(t *testing.T) {
	const original = "slice 1; devices 6 mla-# index=#; claim c; want mla 3; cel row = $row && devices.slice(0, 1).size() == 1"
	// notKept holds the variants whose results are not cached, because they have no cache key or are errors.
	notKept := sets.New("shared", "shares", "share of no shared", "tainted", "binding conditions", "counters", "all nodes", "incomplete", "invalid",
		"operations", "selector fails", "steps", "cost", "environment")
	// Each variant replaces a text of the original statements, or adds statements.
	for name, v := range map[string]struct{ old, replacement string }{
		"count":                {"mla 3", "mla 2"},
		"all":                  {"want mla 3", "all mla"},
		"selector":             {"mla 3", "mla 3 if $device.index > 1"},
		"selector fails":       {"mla 3", "mla 3 if 1 / $device.index == 1"},
		"admin access":         {"mla 3", "mla 3 admin"},
		"tolerations":          {"mla 3", "mla 3; tolerate"},
		"capacity":             {"mla 3", "mla 3 memory:1Gi"},
		"request name":         {"want mla", "want other"},
		"expression":           {"$row && devices.slice(0, 1).size() == 1", "$indices.sum() > 9"},
		"variable":             {"devices.slice(0, 1).size() == 1", "devices.all(d, d.variables.low); variable low = $device.index < 5"},
		"other variable":       {"devices.slice(0, 1).size() == 1", "devices.all(d, d.variables.low); variable low = $device.index < 4"},
		"constraint":           {"", "match index"},
		"configuration":        {"", "config = {}"},
		"second claim":         {"", "claim d; want one 1; cel any = true"},
		"class selectors":      {"slice 1", "class mla.example.com if $device.index != 1; slice 1"},
		"class configuration":  {"slice 1", "class mla.example.com; config = {}; slice 1"},
		"class default":        {"slice 1", "class mla.example.com; define high default = $indices.sum() > 4; slice 1"},
		"other class default":  {"slice 1", "class mla.example.com; define high default = $indices.sum() > 40; slice 1"},
		"in use":               {"", "allocated mla-1"},
		"more in use":          {"", "allocated mla-1 mla-4"},
		"last in use":          {"", "allocated mla-5"},
		"features":             {"", "with ListTypeAttributes"},
		"attribute":            {"index=#", "index=1#"},
		"capacity of a device": {"index=#", "index=# memory:1Gi"},
		"shared":               {"index=#", "index=# +shared"},
		"shares":               {"index=#", "index=# +shared; share mla-0"},
		"share of no shared":   {"", "share mla-0"},
		"tainted":              {"index=#", "index=# +taint=NoSchedule"},
		"binding conditions":   {"index=#", "index=# +binding=ready"},
		"counters":             {"slice 1; devices 6 mla-# index=#", "partitioned gpu{memory=1Gi}; device mla-0 index=0 gpu{memory=1Gi}; device mla-1 index=1"},
		"all nodes":            {"slice 1", "slice 1 everywhere"},
		"incomplete":           {"slice 1", "slice 1 pool=pool-1/1/2"},
		"invalid":              {"mla-#", "mla-0"},
		"operations":           {"slice 1", "slice 1 skips=x"},
		"steps":                {"", "option steps=2"},
		"more steps":           {"", "option steps=1000"},
		"cost":                 {"", "option cost=1"},
		"cost enough":          {"", "option cost=1000000000"},
		"environment":          {"", "option cost-limit=10"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := original + "; " + v.replacement
			if v.old != "" {
				changed = strings.Replace(original, v.old, v.replacement, 1)
			}
			require.NotEqual(t, original, changed)
			same, varied := given(t, original), given(t, changed)
			cache := NewCache()
			_, known := same.asked(t, cache)
			require.False(t, known)
			_, known = same.asked(t, cache)
			require.True(t, known, "it was answered before")
			for _, again := range []bool{false, true} {
				got, known := varied.asked(t, cache, varied.Options...)
				require.Equal(t, again && !notKept.Has(name), known)
				varied.requireRight(t, got, varied.Options...)
			}
			// Ask for the variant first, then for the original.
			cache = NewCache()
			_, known = varied.asked(t, cache, varied.Options...)
			require.False(t, known)
			got, known := same.asked(t, cache)
			require.False(t, known)
			same.requireRight(t, got)
		})
	}
}

// opaque returns an opaque device configuration with parameters for the driver.
func opaque(parameters string) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(parameters)},
	}}
}

// Nodes share cached results even if the names of nodes, pools, devices and claims differ.
func TestAnswersAreSharedByNodes(t *testing.T) {
	renamed := rowOfThree()
	renamed.Slices[0].OnNode("node-2").Pool("pool-2", 3, 1)
	renamed.Slices[0].Name = "2"
	for i := range renamed.Slices[0].Spec.Devices {
		renamed.Slices[0].Spec.Devices[i].Name = string(rune('u' + i))
	}
	renamed.Node = newNode("node-2", "big")
	renamed.InUse = []string{"mla-0"} // in another pool
	renamed.Claims[0].Name, renamed.Claims[0].Namespace = "d", "elsewhere"

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

// A cached result is as complete as a new one. Each claim has its own requests, alternatives and configuration.
func TestKnownAnswersAreComplete(t *testing.T) {
	for name, statements := range map[string]string{
		"second alternative": "claim c; first x; sub nine 9; sub two 2; cel row = $row; config x/nine = nine; config x/two = two; config x = x",
		"several requests":   "claim c; want last 1 if $device.index == 5; want none 0; want first 2; cel row first = $row; config first = first",
		"several claims": `claim a; first x; sub six 6; sub one 1; want y 1; cel high = $indices.sum() > 7
			claim b; want z 1 class=big; first v; sub nine 9; sub two 2; sub one 1; cel low v = $indices.sum() < 2
			claim e; cel any = true`,
		"all":                       "claim c; all x if $device.index < 3; cel row = $row",
		"administers":               "claim c; want x 2 admin; cel row = $row",
		"not found":                 "claim c; want x 2; cel never = devices.exists(d, false)",
		"too few":                   "claim c; want x 9; cel row = $row",
		"not found, several claims": "claim a; want x 5; cel row = $row; claim b; want y 3; cel row = $row",
	} {
		t.Run(name, func(t *testing.T) {
			cache := NewCache()
			statements := "class big if $device.index > 3; config = of class; " + strings.ReplaceAll(statements, "\n\t\t\t", "; ") + "; "
			s := given(t, statements+"devices 6 mla-# index=#")
			first, known := s.asked(t, cache)
			require.False(t, known)
			s.requireRight(t, first)

			s = given(t, statements+"slice 2 node=node-2 pool=pool-2; devices 6 mla-# index=#; node node-2")
			second, known := s.asked(t, cache)
			require.True(t, known)
			s.requireRight(t, second)
			require.Equal(t, devicesOf(first.Results), devicesOf(second.Results))
		})
	}
}

// A cached reason contains the name of the current claim.
func TestKnownReasonsNameTheClaim(t *testing.T) {
	s := func(first, second string) scenario {
		return given(t, "devices 3 mla-# index=#; claim "+first+"; want x 1; cel any = true; claim "+second+"; want y 5; cel any = true")
	}
	cache := NewCache()
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}, {"a", "bc"}, {"ab", "c"}} {
		for _, want := range []bool{false, true} {
			got, known := s(names[0], names[1]).asked(t, cache)
			require.Equal(t, want, known)
			require.Contains(t, got.Err, "claim "+names[1]+": request y: too few matching devices are free (3 of 5 requested)")
		}
	}
}

// Results with reasons and results without reasons are cached separately.
func TestAnswersWithAndWithoutReasons(t *testing.T) {
	s := given(t, "devices 3 mla-# index=#; claim c; want x 2; cel never = devices.exists(d, false)")
	cache := NewCache()
	for range 2 {
		s.Options = []option{WithCache(cache)}
		s.requireDevices(t)
		got, _ := s.answer(t, WithCache(cache))
		require.Equal(t, response{Err: "no set of 2 free devices satisfies constraint never" + structured.ErrFailedAllocationOnNode.Error(), onNode: true}, got)
	}
}

// Errors are not cached.
func TestErrorsAreNotKept(t *testing.T) {
	cache := NewCache()
	s := given(t, "devices 3 mla-# index=#; claim c; want x 2; cel broken = 1 / 0 == 1").with(WithCache(cache))
	for range 2 {
		a := s.allocator(t)
		_, err := a.Allocate(t.Context(), s.OnNode(), s.APIClaims())
		require.ErrorContains(t, err, "division by zero")
		require.EqualValues(t, 1, a.Stats().Evaluations)
	}
}

// Opaque parameters that are Go objects instead of JSON have no cache key. Claims and classes with such parameters can be
// allocated, but the results are not cached.
func TestAnswersWithoutKey(t *testing.T) {
	made := opaque("{}")
	made.Opaque.Parameters = runtime.RawExtension{Object: &resourceapi.ResourceSlice{}}
	ofClaim, ofClass := rowOfThree(), rowOfThree()
	ofClaim.Claims[0].Configure(made)
	ofClass.Classes = []*resourceapi.DeviceClass{classOf(driver)}
	ofClass.Classes[0].Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: made}}
	for _, s := range []scenario{ofClaim, ofClass} {
		cache := NewCache()
		for range 2 {
			a := s.with(WithCache(cache)).allocator(t)
			results, err := a.Allocate(t.Context(), s.OnNode(), s.APIClaims())
			require.NoError(t, err)
			require.Equal(t, []string{"mla=mla-0", "mla=mla-1", "mla=mla-2"}, devicesOf(results))
			require.Positive(t, a.Stats().Steps)
		}
	}
}
