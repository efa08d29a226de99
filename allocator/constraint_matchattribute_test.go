// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

const color = driver + "/color"

// colored makes devices with the attribute color. A nil color is none.
func colored(colors ...any) *sliceBuilder {
	var devices []resourceapi.Device
	for i, c := range colors {
		a := attrs{}
		if c != nil {
			a["color"] = c
		}
		devices = append(devices, newDevice(string(rune('a'+i)), a))
	}
	return slice("1", devices...)
}

var unknownType = resourceapi.DeviceAttribute{}

func TestMatchAttribute(t *testing.T) {
	for name, test := range map[string]struct {
		slice *sliceBuilder
		claim *claimBuilder
		want  []string
	}{
		"first pair":           {colored("red", "blue", "red"), claim("c").want("x", 2).match(color), []string{"x=a", "x=c"}},
		"first one is alone":   {colored("red", "blue", "green", "blue"), claim("c").want("x", 2).match(color), []string{"x=b", "x=d"}},
		"none":                 {colored("red", "blue"), claim("c").want("x", 2).match(color), nil},
		"missing":              {colored(nil, "red", nil, "red"), claim("c").want("x", 2).match(color), []string{"x=b", "x=d"}},
		"missing on all":       {colored(nil, nil), claim("c").want("x", 1).match(color), nil},
		"type differs":         {colored("1", 1, "1"), claim("c").want("x", 2).match(color), []string{"x=a", "x=c"}},
		"bool":                 {colored(true, false, false), claim("c").want("x", 2).match(color), []string{"x=b", "x=c"}},
		"unknown type is one":  {colored(unknownType), claim("c").want("x", 1).match(color), []string{"x=a"}},
		"unknown type matches": {colored(unknownType, unknownType), claim("c").want("x", 2).match(color), nil},
		"two requests":         {colored("red", "blue", "blue"), claim("c").want("x", 1).want("y", 1).match(color), []string{"x=b", "y=c"}},
		"only one of the requests": {
			colored("red", "blue", "blue"), claim("c").want("x", 1).want("y", 2).match(color, "y"), []string{"x=a", "y=b", "y=c"},
		},
		"no such request": {colored("red", "blue"), claim("c").want("x", 2).match(color, "y"), []string{"x=a", "x=b"}},
		"for all requests and for one": {
			colored("red", "blue"), claim("c").want("x", 1).match(color).want("y", 1).match(color, "y"), nil,
		},
		"two attributes": {
			slice("1", newDevice("a", attrs{"color": "red", "size": 1}), newDevice("b", attrs{"color": "red", "size": 2}),
				newDevice("c", attrs{"color": "blue", "size": 2}), newDevice("d", attrs{"color": "red", "size": 2})),
			claim("c").want("x", 2).match(color).match(driver + "/size"), []string{"x=b", "x=d"},
		},
		"backtracking over two groups": {
			colored("red", "red", "blue", "blue", "blue"), claim("c").want("x", 3).match(color), []string{"x=c", "x=d", "x=e"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario{slices: []*sliceBuilder{test.slice}, claims: []*claimBuilder{test.claim}}.requireDevices(t, test.want...)
		})
	}
}

// Each claim has constraints of its own.
func TestMatchAttributeIsPerClaim(t *testing.T) {
	scenario{
		slices: []*sliceBuilder{colored("red", "blue")},
		claims: []*claimBuilder{claim("c1").want("x", 1).match(color), claim("c2").want("y", 1).match(color)},
	}.requireDevices(t, "x=a", "y=b")
}

func TestMatchAttributeAndAll(t *testing.T) {
	all := claim("c").wantAll("x").match(color)
	scenario{slices: []*sliceBuilder{colored("red", "red")}, claims: []*claimBuilder{all}}.requireDevices(t, "x=a", "x=b")
	scenario{slices: []*sliceBuilder{colored("red", "blue")}, claims: []*claimBuilder{all}}.
		requireError(t, "claim default/c, request x: cannot add device mla.example.com/pool-1/b because a claim constraint would not be satisfied")
	scenario{slices: []*sliceBuilder{colored(nil)}, claims: []*claimBuilder{all}}.requireError(t, "cannot add device")
}

// With the feature attributes are sets, and all of them have an element in common.
func TestMatchAttributeList(t *testing.T) {
	roots := func(values ...int64) []int64 { return values }
	for name, test := range map[string]struct {
		slice *sliceBuilder
		claim *claimBuilder
		want  []string
	}{
		"scalars":                {colored("red", "blue", "red"), claim("c").want("x", 2).match(color), []string{"x=a", "x=c"}},
		"lists":                  {colored(roots(1, 2), roots(3), roots(2, 3)), claim("c").want("x", 2).match(color), []string{"x=a", "x=c"}},
		"scalar and list":        {colored(1, roots(2), roots(2, 1)), claim("c").want("x", 2).match(color), []string{"x=a", "x=c"}},
		"types differ":           {colored([]string{"1"}, roots(1), "1"), claim("c").want("x", 2).match(color), []string{"x=a", "x=c"}},
		"version is no string":   {colored("1.0.0", resourceapi.DeviceAttribute{VersionValues: []string{"1.0.0"}}), claim("c").want("x", 2).match(color), nil},
		"bools":                  {colored([]bool{true}, []bool{false, true}), claim("c").want("x", 2).match(color), []string{"x=a", "x=b"}},
		"pairwise is not enough": {colored(roots(1, 2), roots(2, 3), roots(1, 3)), claim("c").want("x", 3).match(color), nil},
		// a and b have 2 in common, which c does not have; a and c have 1.
		"common elements come back": {colored(roots(1, 2), roots(2), roots(1), roots(1)), claim("c").want("x", 3).match(color), []string{"x=a", "x=c", "x=d"}},
		"missing":                   {colored(nil, roots(1), nil, roots(1)), claim("c").want("x", 2).match(color), []string{"x=b", "x=d"}},
		"unknown type":              {colored(unknownType, unknownType), claim("c").want("x", 1).match(color), nil},
		"empty list":                {colored([]string{}, roots(1)), claim("c").want("x", 1).match(color), []string{"x=b"}},
	} {
		t.Run(name, func(t *testing.T) {
			scenario{features: listsOn, slices: []*sliceBuilder{test.slice}, claims: []*claimBuilder{test.claim}}.requireDevices(t, test.want...)
		})
	}
}

// Without the feature a list is a value of unknown type: accepted as first, and
// matched by nothing.
func TestMatchAttributeWithoutLists(t *testing.T) {
	lists := []*sliceBuilder{colored([]int64{1}, []int64{1})}
	scenario{slices: lists, claims: []*claimBuilder{claim("c").want("x", 1).match(color)}}.requireDevices(t, "x=a")
	scenario{slices: lists, claims: []*claimBuilder{claim("c").want("x", 2).match(color)}}.requireNone(t)
}
