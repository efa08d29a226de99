// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a node has is kept beside its slices, for the features it was made with.
func TestInventoriesAreKeptBesideSlices(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{slice("1", ring(3)...)}}
	cache := NewCache()
	a := s.with(WithCache(cache)).allocator(t)
	made, err := a.inventoryOf(newNode(nodeName))
	require.NoError(t, err)
	again, err := a.inventoryOf(newNode(nodeName))
	require.NoError(t, err)
	require.Same(t, made, again)
	a.features.ListTypeAttributes = !a.features.ListTypeAttributes
	another, err := a.inventoryOf(newNode(nodeName))
	require.NoError(t, err)
	require.NotSame(t, made, another)

	// Nodes without slices have the same: nothing.
	none, err := a.inventoryOf(newNode("another"))
	require.NoError(t, err)
	require.Empty(t, none.Candidates)
	other, err := a.inventoryOf(newNode("other"))
	require.NoError(t, err)
	require.Same(t, none, other)
}

// A refusal that is known is what a search says, and takes none.
func TestKnownRefusal(t *testing.T) {
	tight := rowOfThree()
	tight.inUse = []string{"mla-1", "mla-4"}
	for name, opts := range map[string][]Option{"with reasons": {WithReasons()}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			cache := NewCache()
			first, known := tight.asked(t, cache, opts...)
			require.False(t, known)
			again, known := tight.asked(t, cache, opts...)
			require.True(t, known)
			require.Equal(t, first, again)
			tight.requireRight(t, again, opts...)
		})
	}
	s := tight.with(WithCache(NewCache()))
	for _, want := range []bool{false, true} {
		a := s.allocator(t)
		has, err := a.inventoryOf(newNode(nodeName))
		require.NoError(t, err)
		kept := a.answerTo(has, s.apiClaims(), a.state.Of(has.Candidates))
		require.Equal(t, want, knownRefusal(kept) != nil)
		results, err := a.Allocate(t.Context(), newNode(nodeName), s.apiClaims())
		require.NoError(t, err)
		require.Nil(t, results)
	}
}
