// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
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

func TestDistinctAttributeUndo(t *testing.T) {
	red, blue := candidateWith(attrs{"color": "red"}), candidateWith(attrs{"color": "blue"})
	d := &distinctAttribute{name: color}
	requireAdd := func(c *candidate, want bool) {
		t.Helper()
		added, err := d.add(c)
		require.NoError(t, err)
		require.Equal(t, want, added)
	}
	requireAdd(red, true)
	requireAdd(blue, true)
	requireAdd(red, false)
	d.remove(blue)
	requireAdd(red, false)
	requireAdd(blue, true)
	d.remove(blue)
	d.remove(red)
	require.Empty(t, d.values)
	requireAdd(red, true)
}
