// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

func named(names ...string) []*resourceapi.ResourceSlice {
	var all []*resourceapi.ResourceSlice
	for _, name := range names {
		all = append(all, &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{NodeName: &name}})
	}
	return all
}

// The index is used again for the same slices, and for no others.
func TestSliceIndexIsOfTheSameSlices(t *testing.T) {
	all := named("a", "b", "b", "", "c")
	for name, test := range map[string]struct {
		slices []*resourceapi.ResourceSlice
		same   bool
	}{
		"same":        {all, true},
		"other order": {[]*resourceapi.ResourceSlice{all[4], all[1], all[3], all[0], all[2]}, true},
		"one less":    {all[1:], false},
		"one more":    {append(named("d"), all...), false},
		"equal":       {named("a", "b", "b", "", "c"), false},
		"one twice":   {[]*resourceapi.ResourceSlice{all[0], all[0], all[2], all[3], all[4]}, false},
		"none":        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			cache := NewCache()
			first := cache.indexOf(all)
			require.Equal(t, test.same, first == cache.indexOf(test.slices))
		})
	}
}

// A list that names a slice twice is indexed each time.
func TestSliceIndexOfRepeatedSlices(t *testing.T) {
	all := named("a", "b")
	twice := append(all, all[0])
	cache := NewCache()
	require.Len(t, cache.indexOf(twice).of("a").slices, 2)
	require.NotSame(t, cache.indexOf(twice), cache.indexOf(twice))
}

func TestSliceIndexByNode(t *testing.T) {
	all := named("a", "b", "b", "")
	all[2].Spec.PerDeviceNodeSelection = ptr.To(true)
	index := newSliceIndex(all)
	require.Equal(t, all[:1], index.of("a").slices)
	require.False(t, index.of("a").byDevice)
	require.Equal(t, all[1:3], index.of("b").slices)
	require.True(t, index.of("b").byDevice)
	require.Equal(t, all[3:], index.other)
	require.Empty(t, index.of("c").slices)
}

// What a node has is kept beside its slices, for the features it was made with.
func TestInventoriesAreKeptBesideSlices(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{slice("1", ring(3)...)}}
	cache := NewCache()
	a := s.with(WithCache(cache)).allocator(t)
	made, err := a.inventoryOf(newNode(nodeName))
	require.NoError(t, err)
	require.Same(t, made, a.slicesBy.of(nodeName).kept(a.features))
	require.Nil(t, a.slicesBy.of(nodeName).kept(structured.Features{ListTypeAttributes: !a.features.ListTypeAttributes}))

	// Nodes without slices have the same: nothing.
	none, err := a.inventoryOf(newNode("another"))
	require.NoError(t, err)
	require.Empty(t, none.candidates)
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
		inventory, err := a.inventoryOf(newNode(nodeName))
		require.NoError(t, err)
		kept := a.answerTo(inventory, s.apiClaims(), allocatedOf(a.state, inventory.candidates))
		require.Equal(t, want, knownRefusal(kept) != nil)
		results, err := a.Allocate(t.Context(), newNode(nodeName), s.apiClaims())
		require.NoError(t, err)
		require.Nil(t, results)
	}
}
