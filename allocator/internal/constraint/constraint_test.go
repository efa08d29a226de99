// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint_test

import (
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

// candidatesOf makes devices of the given colors. A nil color is none.
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

func text(s string) *inventory.Candidate { return candidatesOf(s)[0] }

func list(values ...int64) *inventory.Candidate { return candidatesOf(values)[0] }

// published has the attributes that devices publish.
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

// requireAdd adds a device to a constraint and demands that it is accepted or not.
func requireAdd(t *testing.T, c constraint.Constraint, added *inventory.Candidate, want bool) {
	t.Helper()
	ok, err := c.Add(&requests.Request{}, added)
	require.NoError(t, err)
	require.Equal(t, want, ok)
}

// A constraint names a request, one of its alternatives, or nothing for all.
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

func TestMatchAttributeUndo(t *testing.T) {
	red, blue := text("red"), text("blue")
	m := newConstraint(t, resourceapi.DeviceConstraint{MatchAttribute: &color}, false)
	requireAdd(t, m, red, true)
	requireAdd(t, m, blue, false)
	requireAdd(t, m, red, true)
	m.Remove(red)
	requireAdd(t, m, blue, false)
	m.Remove(red)
	require.Zero(t, m.Len())
	requireAdd(t, m, blue, true)
	requireAdd(t, m, red, false)
}

func TestMatchAttributeListUndo(t *testing.T) {
	all, low, high := list(1, 2, 3), list(1, 2), list(2, 3)
	m := newConstraint(t, resourceapi.DeviceConstraint{MatchAttribute: &color}, true)
	requireAdd(t, m, all, true)
	requireAdd(t, m, low, true)
	requireAdd(t, m, list(3), false)
	requireAdd(t, m, high, true)
	requireAdd(t, m, list(1), false)
	m.Remove(high)
	requireAdd(t, m, list(1), true)
	m.Remove(list(1))
	m.Remove(low)
	requireAdd(t, m, list(3), true)
	m.Remove(list(3))
	m.Remove(all)
	require.Zero(t, m.Len())
	requireAdd(t, m, list(4), true)
}
func TestDistinctAttributeUndo(t *testing.T) {
	red, blue := text("red"), text("blue")
	d := newConstraint(t, resourceapi.DeviceConstraint{DistinctAttribute: &color}, false)
	requireAdd(t, d, red, true)
	requireAdd(t, d, blue, true)
	requireAdd(t, d, red, false)
	d.Remove(blue)
	requireAdd(t, d, red, false)
	requireAdd(t, d, blue, true)
	d.Remove(blue)
	d.Remove(red)
	require.Zero(t, d.Len())
	requireAdd(t, d, red, true)
}

func TestDistinctAttributeListUndo(t *testing.T) {
	d := newConstraint(t, resourceapi.DeviceConstraint{DistinctAttribute: &color}, true)
	requireAdd(t, d, list(1, 2), true)
	requireAdd(t, d, list(2, 3), false)
	requireAdd(t, d, list(3), true)
	d.Remove(list(3))
	requireAdd(t, d, list(3, 4), true)
	d.Remove(list(3, 4))
	d.Remove(list(1, 2))
	require.Zero(t, d.Len())
}

// What constraints admit is what they add, and most is never less than can be
// added together.
func TestBoundingConstraints(t *testing.T) {
	one, two := []int64{1}, []int64{1, 2}
	match := func() constraint.Constraint {
		return newConstraint(t, resourceapi.DeviceConstraint{MatchAttribute: &color}, false)
	}
	matchList := func() constraint.Constraint {
		return newConstraint(t, resourceapi.DeviceConstraint{MatchAttribute: &color}, true)
	}
	distinct := func() constraint.Constraint {
		return newConstraint(t, resourceapi.DeviceConstraint{DistinctAttribute: &color}, false)
	}
	distinctList := func() constraint.Constraint {
		return newConstraint(t, resourceapi.DeviceConstraint{DistinctAttribute: &color}, true)
	}
	for name, test := range map[string]struct {
		constraint constraint.Constraint
		devices    []*inventory.Candidate
		// first is added before the others are looked at, if not nil.
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
