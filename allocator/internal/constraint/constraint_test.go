// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/attribute"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
)

var color resourceapi.FullyQualifiedName = "mla.example.com/color"

var unknownType = resourceapi.DeviceAttribute{}

// candidatesOf returns a device for each color. The device for nil has no color.
func candidatesOf(colors ...any) []*inventory.Candidate {
	var result []*inventory.Candidate
	for i, value := range colors {
		a := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
		name := resourceapi.QualifiedName(color)
		switch value := value.(type) {
		case int:
			a[name] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(value))}
		case string:
			a[name] = resourceapi.DeviceAttribute{StringValue: &value}
		case []int64:
			a[name] = resourceapi.DeviceAttribute{IntValues: value}
		case resourceapi.DeviceAttribute:
			a[name] = value
		}
		result = append(result, &inventory.Candidate{Position: i, Device: &resourceapi.Device{Attributes: a}, Slice: &resourceapi.ResourceSlice{}})
	}
	return result
}

// published is a Lookup for published attributes only.
type published struct{}

func (published) Attribute(_ *requests.Request, c *inventory.Candidate, name resourceapi.FullyQualifiedName) (*resourceapi.DeviceAttribute, error) {
	return attribute.Published(c, name), nil
}

func newConstraint(t *testing.T, api resourceapi.DeviceConstraint, lists bool) constraint.Constraint {
	t.Helper()
	claim := &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Constraints: []resourceapi.DeviceConstraint{api}}}}
	c, err := constraint.New(claim, 0, lists, published{})
	require.NoError(t, err)
	return c
}

// requireAdd adds a device to a constraint and requires that Add returns want.
func requireAdd(t *testing.T, c constraint.Constraint, added *inventory.Candidate, want bool) {
	t.Helper()
	ok, err := c.Add(&requests.Request{}, added)
	require.NoError(t, err)
	require.Equal(t, want, ok)
}

// A constraint names a request, an alternative of a request, or no request, which means all requests.
func TestCovers(t *testing.T) {
	plain, alternative := &requests.Request{Name: "x"}, &requests.Request{Name: "x/large", Parent: "x"}
	for name, test := range map[string]struct {
		requests           []string
		plain, alternative bool
	}{
		"all":               {nil, true, true},
		"request":           {[]string{"y", "x"}, true, true},
		"alternative":       {[]string{"x/large"}, false, true},
		"other alternative": {[]string{"x/small"}, false, false},
		"name alone":        {[]string{"large"}, false, false},
		"other request":     {[]string{"y"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			api := &resourceapi.DeviceConstraint{Requests: test.requests}
			require.Equal(t, test.plain, constraint.Covers(api, plain))
			require.Equal(t, test.alternative, constraint.Covers(api, alternative))
		})
	}
}

// TestUndo adds and removes devices. In a test case, +1 adds device 1, !1 adds device 1 and requires that it is refused, and -1
// removes device 1. At the end the constraint must be empty.
func TestUndo(t *testing.T) {
	match, distinct := resourceapi.DeviceConstraint{MatchAttribute: &color}, resourceapi.DeviceConstraint{DistinctAttribute: &color}
	for name, test := range map[string]struct {
		api   resourceapi.DeviceConstraint
		lists bool
		steps string
	}{
		"match":          {match, false, "+1 !2 +1 -1 !2 -1 +2 !1 -2"},
		"match lists":    {match, true, "+1,2,3 +1,2 !3 +2,3 !1 -2,3 +1 -1 -1,2 +3 -3 -1,2,3 +4 -4"},
		"distinct":       {distinct, false, "+1 +2 !1 -2 !1 +2 -2 -1 +1 -1"},
		"distinct lists": {distinct, true, "+1,2 !2,3 +3 -3 +3,4 -3,4 -1,2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConstraint(t, test.api, test.lists)
			for step := range strings.FieldsSeq(test.steps) {
				var values []int64
				for _, digit := range strings.Split(step[1:], ",") {
					values = append(values, int64(digit[0]-'0'))
				}
				device := candidatesOf(int(values[0]))[0]
				if test.lists {
					device = candidatesOf(values)[0]
				}
				if step[0] == '-' {
					c.Remove(device)
				} else {
					requireAdd(t, c, device, step[0] == '+')
				}
			}
			require.Zero(t, c.Len())
		})
	}
}

// Add accepts exactly the devices that Admits accepts. Most is never less than how many devices can be added together.
func TestBoundingConstraints(t *testing.T) {
	one, two := []int64{1}, []int64{1, 2}
	of := func(api resourceapi.DeviceConstraint, lists bool) func() constraint.Constraint {
		return func() constraint.Constraint { return newConstraint(t, api, lists) }
	}
	match, matchList := of(resourceapi.DeviceConstraint{MatchAttribute: &color}, false), of(resourceapi.DeviceConstraint{MatchAttribute: &color}, true)
	distinct, distinctList := of(resourceapi.DeviceConstraint{DistinctAttribute: &color}, false), of(resourceapi.DeviceConstraint{DistinctAttribute: &color}, true)
	for name, test := range map[string]struct {
		constraint constraint.Constraint
		devices    []*inventory.Candidate
		// If first is not nil, it is added before the other devices.
		first    *inventory.Candidate
		admitted []bool
		most     int
	}{
		"match":                     {match(), candidatesOf("red", "blue", "red", nil), nil, []bool{true, true, true, false}, 2},
		"match, decided":            {match(), candidatesOf("red", "blue", "red", nil), candidatesOf("blue")[0], []bool{false, true, false, false}, 1},
		"match, unknown type":       {match(), candidatesOf(unknownType, "red"), nil, []bool{true, true}, 1},
		"match lists":               {matchList(), candidatesOf(one, two, 2, []int64{}, nil), nil, []bool{true, true, true, false, false}, 2},
		"match lists, decided":      {matchList(), candidatesOf(one, two, 2, nil), candidatesOf(2)[0], []bool{false, true, true, false}, 2},
		"distinct":                  {distinct(), candidatesOf("red", "blue", "red", nil), nil, []bool{true, true, true, false}, 2},
		"distinct, one taken":       {distinct(), candidatesOf("red", "blue", "red", unknownType), candidatesOf("blue")[0], []bool{true, false, true, false}, 1},
		"distinct, unknown type":    {distinct(), candidatesOf(unknownType, "red"), nil, []bool{true, true}, 2},
		"distinct lists":            {distinctList(), candidatesOf(one, two, 2, unknownType, nil), nil, []bool{true, true, true, false, false}, 2},
		"distinct lists, one taken": {distinctList(), candidatesOf(one, two, 2, 3), candidatesOf(2)[0], []bool{true, false, false, true}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.constraint.(constraint.Bounding)
			if test.first != nil {
				requireAdd(t, test.constraint, test.first, true)
			}
			var admitted []bool
			var devices []*inventory.Candidate
			for _, d := range test.devices {
				admitted = append(admitted, c.Admits(d))
				if c.Admits(d) {
					devices = append(devices, d)
				}
			}
			require.Equal(t, test.admitted, admitted)
			require.Equal(t, test.most, c.Most(devices))
		})
	}
}
