// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

func TestSetShapes(t *testing.T) {
	for name, test := range map[string]struct {
		claim *claimBuilder
		names []string
		want  []setShape
	}{
		"one request":                     {claim("c").want("a", 4), nil, []setShape{{4, true}}},
		"two requests":                    {claim("c").want("a", 4).want("b", 2), nil, []setShape{{6, false}}},
		"one of two":                      {claim("c").want("a", 4).want("b", 2), []string{"b"}, []setShape{{2, true}}},
		"alternatives":                    {claim("c").want("a", 1).firstAvailable("b", sub("x", 3), sub("y", 1)), nil, []setShape{{2, false}, {4, false}}},
		"one alternative":                 {claim("c").want("a", 1).firstAvailable("b", sub("x", 3), sub("y", 1)), []string{"a", "b/y"}, []setShape{{1, true}, {2, false}}},
		"all":                             {claim("c").want("a", 1).wantAll("b"), nil, nil},
		"all that is not covered":         {claim("c").want("a", 1).wantAll("b"), []string{"a"}, []setShape{{1, true}}},
		"none":                            {claim("c").want("a", 0), nil, nil},
		"more than a claim can have":      {claim("c").want("a", 33), nil, nil},
		"more than a claim can have, too": {claim("c").want("a", 1<<62).want("b", 1<<62), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := setShapes(test.claim.ResourceClaim, test.names)
			slices.SortFunc(got, func(a, b setShape) int { return a.size - b.size })
			require.Equal(t, test.want, got)
		})
	}
	many := claim("c")
	for _, name := range []string{"a", "b", "c", "d"} {
		many.firstAvailable(name, sub("1", 1), sub("2", 2), sub("3", 3))
	}
	require.Len(t, setShapes(many.ResourceClaim, nil), maxShapes)
}

// TestSearchesReadNothingThatWasPrepared: of what a claim says nothing is left to be read in a scheduling cycle.
func TestSearchesReadNothingThatWasPrepared(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	preparer, err := NewPreparer(environment, dracel.Features{})
	require.NoError(t, err)
	c := claim("c").want("a", 2).firstAvailable("b", sub("x", 2), sub("y", 1)).
		cel("two", "a").define("two", "devices.all(d, d.attributes['"+driver+"'].index < 7)").
		cel("all").define("all", "devices.map(d, d.attributes['"+driver+"'].index).sum() > 9")
	c.UID = "u"
	prepared, err := preparer.Prepare(t.Context(), c.ResourceClaim, classes{driver: classOf(driver)}, true)
	require.NoError(t, err)
	known := analyses.Len()
	require.GreaterOrEqual(t, known, 3)
	s := scenario{
		claims: []*claimBuilder{c}, slices: []*sliceBuilder{slice("s", ring(8)...)},
		opts: []Option{WithEnvironment(environment), WithPrepared(Prepared{"u": prepared})},
	}
	results, err := s.allocate(t)
	require.NoError(t, err)
	require.Len(t, devicesOf(results), 4)
	require.Equal(t, known, analyses.Len())
}
