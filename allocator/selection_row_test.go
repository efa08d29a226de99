// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/selection"
)

// rowOf is what a search finds to be known about the selectors of its first request.
func (s scenario) rowOf(t testing.TB, cache *Cache, selectors *dracel.Cache) *search {
	t.Helper()
	a := s.with(WithCache(cache)).allocator(t)
	a.selectors = selectors
	inventory, err := a.inventoryOf(s.onNode())
	require.NoError(t, err)
	result, err := newSearch(t.Context(), a, s.onNode(), inventory, s.apiClaims())
	require.NoError(t, err)
	return result
}

// row is where the verdicts on the devices for the first request are remembered.
func (s *search) row() *selection.Row { return setup{s}.selectionRowOf(s.groups[0].first) }

// Nodes of one hardware type share what selectors say, for the same selectors only.
func TestSelectionsAreShared(t *testing.T) {
	cache, selectors := NewCache(), dracel.NewCache(10, dracel.Features{})
	first := scenario{slices: []*sliceBuilder{slice("1", ring(3)...)}, claims: []*claimBuilder{claim("c").want("x", 1, index+" > 0")}}
	s := first.rowOf(t, cache, selectors)
	found, err := s.run()
	require.NoError(t, err)
	require.True(t, found)

	odd := classOf("odd", index+" % 2 == 1")
	same := classOf("same", index+" > 0")
	twice := classOf("twice", index+" > 0", index+" > 0")
	on := func(b *sliceBuilder) []*sliceBuilder { return []*sliceBuilder{b} }
	for name, test := range map[string]struct {
		scenario
		selectors *dracel.Cache
		shared    bool
	}{
		"same":            {scenario: first, shared: true},
		"other claim":     {scenario: scenario{slices: first.slices, claims: []*claimBuilder{claim("d").want("other", 3, index+" > 0").admin()}}, shared: true},
		"other names":     {scenario: scenario{slices: on(slice("2", ring(3)...).pool("pool-2", 2, 1)), claims: first.claims}, shared: true},
		"in the class":    {scenario: scenario{slices: first.slices, classes: []*resourceapi.DeviceClass{same}, claims: []*claimBuilder{claim("c").want("x", 1).class("same")}}, shared: true},
		"other class":     {scenario: scenario{slices: first.slices, classes: []*resourceapi.DeviceClass{odd}, claims: []*claimBuilder{claim("c").want("x", 1, index+" > 0").class("odd")}}},
		"several":         {scenario: scenario{slices: first.slices, classes: []*resourceapi.DeviceClass{twice}, claims: []*claimBuilder{claim("c").want("x", 1).class("twice")}}},
		"other selector":  {scenario: scenario{slices: first.slices, claims: []*claimBuilder{claim("c").want("x", 1, index+" >0")}}},
		"none":            {scenario: scenario{slices: first.slices, claims: []*claimBuilder{claim("c").want("x", 1)}}},
		"other hardware":  {scenario: scenario{slices: on(slice("1", ring(4)...)), claims: first.claims}},
		"other selectors": {scenario: first, selectors: dracel.NewCache(10, dracel.Features{EnableListTypeAttributes: true})},
	} {
		t.Run(name, func(t *testing.T) {
			if test.selectors == nil {
				test.selectors = selectors
			}
			other := test.rowOf(t, cache, test.selectors)
			require.NotNil(t, other.row())
			require.Equal(t, test.shared, s.row() == other.row())
		})
	}
}

// The node plays a role where devices are selected by node: nothing is shared.
func TestSelectionsByNodeAreNotShared(t *testing.T) {
	cache, selectors := NewCache(), dracel.NewCache(10, dracel.Features{})
	perDevice := func(name string, here ...bool) *sliceBuilder {
		devices := ring(len(here))
		for i, is := range here {
			if is {
				onAny(&devices[i])
			} else {
				elsewhere(&devices[i])
			}
		}
		return slice(name, devices...).edit(func(s *resourceapi.ResourceSliceSpec) {
			s.NodeName, s.PerDeviceNodeSelection = nil, ptr.To(true)
		})
	}
	for _, test := range []struct {
		slice *sliceBuilder
		want  string
	}{
		{perDevice("1", true, false, true), "x=mla-0"},
		{perDevice("2", false, true, true), "x=mla-1"},
		{perDevice("3", false, false, true), "x=mla-2"},
	} {
		s := scenario{slices: []*sliceBuilder{test.slice}, claims: []*claimBuilder{claim("c").want("x", 1, index+" >= 0")}}
		require.Nil(t, s.rowOf(t, cache, selectors).row())
		s.with(WithCache(cache)).requireDevices(t, test.want)
	}
}

// A selector that fails fails each time, for whoever comes to the device.
func TestFailingSelectorsAreNotRemembered(t *testing.T) {
	cache, selectors := NewCache(), dracel.NewCache(10, dracel.Features{})
	s := scenario{slices: []*sliceBuilder{slice("1", ring(4)...)}, claims: []*claimBuilder{claim("c").want("x", 2, "1 / ("+index+" - 2) <= 0")}}
	for range 2 {
		search := s.rowOf(t, cache, selectors)
		found, err := search.run()
		require.NoError(t, err)
		require.True(t, found, "the device is not needed")
	}
	s.inUse = []string{"mla-0"}
	for range 2 {
		search := s.rowOf(t, cache, selectors)
		_, err := search.run()
		require.ErrorContains(t, err, "claim default/c: selector #0 on device mla.example.com/pool-1/mla-2: CEL runtime error: division by zero")
		require.Equal(t, selection.Unknown, search.row().Of(2))
	}
}

// What others found out changes nothing: not even the reason why the claims don't fit,
// which goes by what the search saw.
func TestReasonsDontDependOnOthers(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(6)...)},
		claims: []*claimBuilder{
			claim("c").want("x", 2, index+" >= 0").want("y", 2, index+" == 5").cel("row", "x").define("row", inARow),
		},
	}
	cache, selectors := NewCache(), dracel.NewCache(10, dracel.Features{})
	var reasons []string
	for _, inUse := range [][]string{{"mla-1", "mla-3", "mla-5"}, nil, {"mla-1", "mla-3"}, {"mla-1", "mla-3", "mla-5"}} {
		s.inUse = inUse
		ask := func(c *Cache) string {
			a := s.with(WithCache(c), WithReasons()).allocator(t)
			a.selectors = selectors
			results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
			require.Nil(t, results)
			return fmt.Sprint(err)
		}
		alone := ask(NewCache())
		require.Equal(t, alone, ask(cache), "in use: %v", inUse)
		reasons = append(reasons, alone)
	}
	require.Greater(t, len(slices.Compact(reasons)), 2)

	// The first one with what the second found out, but not its answer.
	cache = NewCache()
	for _, inUse := range [][]string{nil, {"mla-1", "mla-3", "mla-5"}} {
		s.inUse = inUse
		a := s.with(WithCache(cache), WithReasons()).allocator(t)
		a.selectors = selectors
		_, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
		want := s.with(WithReasons()).allocator(t)
		_, alone := want.Allocate(t.Context(), s.onNode(), s.apiClaims())
		require.EqualError(t, err, alone.Error(), "in use: %v", inUse)
	}
}

// A selector that is none is an error, with a Cache too.
func TestSelectionsWithoutExpression(t *testing.T) {
	broken := classOf("broken")
	broken.Spec.Selectors = []resourceapi.DeviceSelector{{}}
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(2)...)}, classes: []*resourceapi.DeviceClass{broken},
		claims: []*claimBuilder{claim("c").want("x", 1).class("broken").cel("any").define("any", "true")},
	}
	s.with(WithCache(NewCache())).requireError(t, "class broken: selector #0: CEL expression empty (unsupported selector type?)")
}
