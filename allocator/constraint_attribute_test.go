// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

func TestLookupAttribute(t *testing.T) {
	c := candidateWith(attrs{"index": 1, "mla.example.com/color": "red", "other.example.com/index": 2, "both": 3, "mla.example.com/both": 4})
	for name, want := range map[resourceapi.FullyQualifiedName]*resourceapi.DeviceAttribute{
		"mla.example.com/index":   {IntValue: ptr.To(int64(1))},
		"mla.example.com/color":   {StringValue: ptr.To("red")},
		"mla.example.com/both":    {IntValue: ptr.To(int64(4))},
		"other.example.com/index": {IntValue: ptr.To(int64(2))},
		"other.example.com/color": nil,
		"mla.example.com/missing": nil,
		"missing":                 nil,
	} {
		require.Empty(t, cmp.Diff(want, lookupAttribute(c, name)), name)
	}
}

// candidateWith makes a device of the driver.
func candidateWith(a attrs) *candidate {
	s := slice("1", newDevice("mla-0", a))
	return &candidate{device: &s.Spec.Devices[0], slice: s.ResourceSlice}
}

func TestScalarsCompareByTypeAndValue(t *testing.T) {
	different := []resourceapi.DeviceAttribute{
		{},
		{StringValue: ptr.To("1")},
		{StringValue: ptr.To("")},
		{VersionValue: ptr.To("1")},
		{IntValue: ptr.To(int64(1))},
		{IntValue: ptr.To(int64(0))},
		{BoolValue: ptr.To(true)},
		{BoolValue: ptr.To(false)},
	}
	for i := range different {
		for j := range different {
			same := different[j].DeepCopy()
			require.Equal(t, i == j, scalarOf(&different[i]) == scalarOf(same), "%v and %v", different[i], same)
		}
	}
	require.Equal(t, scalar{}, scalarOf(&resourceapi.DeviceAttribute{IntValues: []int64{1}}), "a list is no scalar")
}
