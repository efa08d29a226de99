// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// The reason why claims don't fit does not depend on cached results of other searches.
func TestReasonsDontDependOnOthers(t *testing.T) {
	s := given(t, "devices 6 mla-# index=#; claim c; want x 2 if $device.index >= 0; want y 2 if $device.index == 5; cel row x = $row")
	cache, selectors := NewCache(), dracel.NewCache(10, dracel.Features{})
	var reasons []string
	for _, inUse := range [][]string{{"mla-1", "mla-3", "mla-5"}, nil, {"mla-1", "mla-3"}, {"mla-1", "mla-3", "mla-5"}} {
		s.InUse = inUse
		ask := func(c *Cache) string {
			a := s.with(WithCache(c), WithReasons()).allocator(t)
			a.planner.Selectors = selectors
			results, err := a.Allocate(t.Context(), s.OnNode(), s.APIClaims())
			require.Nil(t, results)
			return fmt.Sprint(err)
		}
		alone := ask(NewCache())
		require.Equal(t, alone, ask(cache), "in use: %v", inUse)
		reasons = append(reasons, alone)
	}
	require.Greater(t, len(slices.Compact(reasons)), 2)

	// Repeat the first search with the cached tables of the second search, but without its cached result.
	cache = NewCache()
	for _, inUse := range [][]string{nil, {"mla-1", "mla-3", "mla-5"}} {
		s.InUse = inUse
		a := s.with(WithCache(cache), WithReasons()).allocator(t)
		a.planner.Selectors = selectors
		_, err := a.Allocate(t.Context(), s.OnNode(), s.APIClaims())
		want := s.with(WithReasons()).allocator(t)
		_, alone := want.Allocate(t.Context(), s.OnNode(), s.APIClaims())
		require.EqualError(t, err, alone.Error(), "in use: %v", inUse)
	}
}
