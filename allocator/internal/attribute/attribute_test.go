// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package attribute_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/attribute"
	"github.com/celset/celset/allocator/internal/inventory"
)

func scalar(a resourceapi.DeviceAttribute) attribute.Scalar { return attribute.ScalarOf(&a) }

func whole(i int64) attribute.Scalar { return scalar(resourceapi.DeviceAttribute{IntValue: &i}) }

func text(s string) attribute.Scalar { return scalar(resourceapi.DeviceAttribute{StringValue: &s}) }

func TestPublishedAttribute(t *testing.T) {
	whole := func(i int64) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{IntValue: &i} }
	c := &inventory.Candidate{
		Slice: &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: "mla.example.com"}},
		Device: &resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"index": whole(1), "mla.example.com/color": {StringValue: ptr.To("red")}, "other.example.com/index": whole(2), "both": whole(3), "mla.example.com/both": whole(4),
		}},
	}
	for name, want := range map[resourceapi.FullyQualifiedName]*resourceapi.DeviceAttribute{
		"mla.example.com/index":   {IntValue: ptr.To(int64(1))},
		"mla.example.com/color":   {StringValue: ptr.To("red")},
		"mla.example.com/both":    {IntValue: ptr.To(int64(4))},
		"other.example.com/index": {IntValue: ptr.To(int64(2))},
		"other.example.com/color": nil,
		"mla.example.com/missing": nil,
		"missing":                 nil,
	} {
		require.Empty(t, cmp.Diff(want, attribute.Published(c, name)), name)
	}
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
			require.Equal(t, i == j, attribute.ScalarOf(&different[i]) == attribute.ScalarOf(same), "%v and %v", different[i], same)
		}
	}
	require.Equal(t, attribute.Scalar{}, attribute.ScalarOf(&resourceapi.DeviceAttribute{IntValues: []int64{1}}), "a list is no scalar")
}

func TestValuesOf(t *testing.T) {
	for name, test := range map[string]struct {
		published resourceapi.DeviceAttribute
		want      sets.Set[attribute.Scalar]
	}{
		"ints":         {resourceapi.DeviceAttribute{IntValues: []int64{1, 2, 1}}, sets.New(whole(1), whole(2))},
		"bools":        {resourceapi.DeviceAttribute{BoolValues: []bool{true, false}}, sets.New(scalar(resourceapi.DeviceAttribute{BoolValue: ptr.To(true)}), scalar(resourceapi.DeviceAttribute{BoolValue: ptr.To(false)}))},
		"strings":      {resourceapi.DeviceAttribute{StringValues: []string{"1", ""}}, sets.New(text("1"), text(""))},
		"versions":     {resourceapi.DeviceAttribute{VersionValues: []string{"1.0.0"}}, sets.New(scalar(resourceapi.DeviceAttribute{VersionValue: ptr.To("1.0.0")}))},
		"one int":      {resourceapi.DeviceAttribute{IntValue: ptr.To(int64(1))}, sets.New(whole(1))},
		"one bool":     {resourceapi.DeviceAttribute{BoolValue: ptr.To(false)}, sets.New(scalar(resourceapi.DeviceAttribute{BoolValue: ptr.To(false)}))},
		"one string":   {resourceapi.DeviceAttribute{StringValue: ptr.To("1")}, sets.New(text("1"))},
		"one version":  {resourceapi.DeviceAttribute{VersionValue: ptr.To("1.0.0")}, sets.New(scalar(resourceapi.DeviceAttribute{VersionValue: ptr.To("1.0.0")}))},
		"empty list":   {resourceapi.DeviceAttribute{StringValues: []string{}}, nil},
		"unknown type": {resourceapi.DeviceAttribute{}, nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, attribute.ValuesOf(&test.published)) })
	}
}
