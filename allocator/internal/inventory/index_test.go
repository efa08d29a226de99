// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

func onNodes(names ...string) []*resourceapi.ResourceSlice {
	var all []*resourceapi.ResourceSlice
	for _, name := range names {
		all = append(all, &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{NodeName: &name}})
	}
	return all
}

// The index is used again for the same slices, and for no others.
func TestIndexIsOfTheSameSlices(t *testing.T) {
	all := onNodes("a", "b", "b", "", "c")
	for name, test := range map[string]struct {
		slices []*resourceapi.ResourceSlice
		same   bool
	}{
		"same":        {all, true},
		"other order": {[]*resourceapi.ResourceSlice{all[4], all[1], all[3], all[0], all[2]}, true},
		"one less":    {all[1:], false},
		"one more":    {append(onNodes("d"), all...), false},
		"equal":       {onNodes("a", "b", "b", "", "c"), false},
		"one twice":   {[]*resourceapi.ResourceSlice{all[0], all[0], all[2], all[3], all[4]}, false},
		"none":        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var latest Latest
			first := latest.Of(all)
			require.Equal(t, test.same, first == latest.Of(test.slices))
		})
	}
}

// A list that names a slice twice is indexed each time.
func TestIndexOfRepeatedSlices(t *testing.T) {
	all := onNodes("a", "b")
	twice := append(all, all[0])
	var latest Latest
	require.Len(t, latest.Of(twice).of("a").slices, 2)
	require.NotSame(t, latest.Of(twice), latest.Of(twice))
}

func TestIndexByNode(t *testing.T) {
	all := onNodes("a", "b", "b", "")
	all[2].Spec.PerDeviceNodeSelection = ptr.To(true)
	index := newIndex(all)
	require.Equal(t, all[:1], index.of("a").slices)
	require.False(t, index.of("a").byDevice)
	require.Equal(t, all[1:3], index.of("b").slices)
	require.True(t, index.of("b").byDevice)
	require.Equal(t, all[3:], index.other)
	require.Empty(t, index.of("c").slices)
}
