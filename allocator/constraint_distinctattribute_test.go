// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"
)

func TestDistinctAttribute(t *testing.T) {
	for name, test := range map[string]struct {
		slice *sliceBuilder
		claim *claimBuilder
		want  []string
	}{
		"first pair":            {colored("red", "red", "blue"), claim("c").want("x", 2).distinct(color), []string{"x=a", "x=c"}},
		"not only neighbours":   {colored("red", "blue", "red", "green"), claim("c").want("x", 3).distinct(color), []string{"x=a", "x=b", "x=d"}},
		"none":                  {colored("red", "red"), claim("c").want("x", 2).distinct(color), nil},
		"missing":               {colored(nil, "red", nil, "blue"), claim("c").want("x", 2).distinct(color), []string{"x=b", "x=d"}},
		"type differs":          {colored("1", 1), claim("c").want("x", 2).distinct(color), []string{"x=a", "x=b"}},
		"unknown type is one":   {colored(unknownType), claim("c").want("x", 1).distinct(color), []string{"x=a"}},
		"unknown type is first": {colored(unknownType, "red"), claim("c").want("x", 2).distinct(color), []string{"x=a", "x=b"}},
		"unknown type after it": {colored("red", unknownType, "blue"), claim("c").want("x", 2).distinct(color), []string{"x=a", "x=c"}},
		"two requests":          {colored("red", "red", "blue"), claim("c").want("x", 1).want("y", 1).distinct(color), []string{"x=a", "y=c"}},
		"only one of the requests": {
			colored("red", "red", "red", "blue"), claim("c").want("x", 2).want("y", 1).distinct(color, "y"), []string{"x=a", "x=b", "y=c"},
		},
		"earlier choice is taken back": {
			colored("red", "blue", "red"), claim("c").want("x", 1).want("y", 1, "device.attributes['mla.example.com'].color == 'red'").distinct(color),
			[]string{"x=b", "y=a"},
		},
		"beside matchAttribute": {
			colored("red", "blue"), claim("c").want("x", 2).distinct(color).match(color), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario{slices: []*sliceBuilder{test.slice}, claims: []*claimBuilder{test.claim}}.requireDevices(t, test.want...)
		})
	}
}

func TestDistinctAttributeAndAll(t *testing.T) {
	all := claim("c").wantAll("x").distinct(color)
	scenario{slices: []*sliceBuilder{colored("red", "blue")}, claims: []*claimBuilder{all}}.requireDevices(t, "x=a", "x=b")
	scenario{slices: []*sliceBuilder{colored("red", "red")}, claims: []*claimBuilder{all}}.
		requireError(t, "claim default/c, request x: cannot add device mla.example.com/pool-1/b because a claim constraint would not be satisfied")
}

// With the feature attributes are sets, and no two have an element in common.
func TestDistinctAttributeList(t *testing.T) {
	roots := func(values ...int64) []int64 { return values }
	for name, test := range map[string]struct {
		slice *sliceBuilder
		claim *claimBuilder
		want  []string
	}{
		"scalars":             {colored("red", "red", "blue"), claim("c").want("x", 2).distinct(color), []string{"x=a", "x=c"}},
		"lists":               {colored(roots(1, 2), roots(2, 3), roots(3, 4)), claim("c").want("x", 2).distinct(color), []string{"x=a", "x=c"}},
		"scalar and list":     {colored(1, roots(2, 1), roots(2)), claim("c").want("x", 2).distinct(color), []string{"x=a", "x=c"}},
		"types differ":        {colored("1", roots(1), []string{"1"}), claim("c").want("x", 2).distinct(color), []string{"x=a", "x=b"}},
		"not only neighbours": {colored(roots(1), roots(2), roots(1), roots(3)), claim("c").want("x", 3).distinct(color), []string{"x=a", "x=b", "x=d"}},
		"backtracking":        {colored(roots(1, 2), roots(1), roots(2)), claim("c").want("x", 2).distinct(color), []string{"x=b", "x=c"}},
		"none":                {colored(roots(1, 2), roots(2, 3), roots(3, 1)), claim("c").want("x", 2).distinct(color), nil},
		"missing":             {colored(nil, roots(1)), claim("c").want("x", 1).distinct(color), []string{"x=b"}},
		"unknown type":        {colored(unknownType, roots(1)), claim("c").want("x", 1).distinct(color), []string{"x=b"}},
	} {
		t.Run(name, func(t *testing.T) {
			scenario{features: listsOn, slices: []*sliceBuilder{test.slice}, claims: []*claimBuilder{test.claim}}.requireDevices(t, test.want...)
		})
	}
}
