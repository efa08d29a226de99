// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

func TestSearchBacktracks(t *testing.T) {
	four := []*sliceBuilder{slice("1", ring(4)...)}
	only := func(i int) string { return fmt.Sprintf("%s == %d", index, i) }
	for name, test := range map[string]struct {
		claims []*claimBuilder
		want   []string
	}{
		"no claims": {},
		"over requests": {
			[]*claimBuilder{claim("c").want("any", 1).want("first", 1, only(0))}, []string{"any=mla-1", "first=mla-0"},
		},
		"over several requests": {
			[]*claimBuilder{claim("c").want("a", 1).want("b", 1).want("c", 1, only(1)).want("d", 1, only(0))},
			[]string{"a=mla-2", "b=mla-3", "c=mla-1", "d=mla-0"},
		},
		"over claims": {
			[]*claimBuilder{claim("a").want("any", 2), claim("b").want("first", 1, only(0)), claim("c").want("last", 1, only(3))},
			[]string{"any=mla-1", "any=mla-2", "first=mla-0", "last=mla-3"},
		},
		"in vain": {
			[]*claimBuilder{claim("a").want("any", 2), claim("b").want("first", 1, only(0)), claim("c").want("again", 1, only(0))}, nil,
		},
		"ascending within a request": {
			[]*claimBuilder{claim("a").want("any", 2).want("middle", 1, only(1))}, []string{"any=mla-0", "any=mla-2", "middle=mla-1"},
		},
		"any order between requests": {
			[]*claimBuilder{claim("a").want("late", 1, index+" >= 2").want("early", 1)}, []string{"late=mla-2", "early=mla-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			results, err := scenario{slices: four, claims: test.claims}.allocate(t)
			require.NoError(t, err)
			require.Equal(t, test.want, devicesOf(results))
			require.Equal(t, test.want == nil && len(test.claims) > 0, results == nil)
		})
	}
}

func TestFailedSearchLeavesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		claims  []*claimBuilder
		message string
	}{
		"none": {claims: []*claimBuilder{
			claim("a").want("x", 2).match(color),
			claim("b").want("y", 2).distinct(driver+"/index").cel("never").define("never", "false"),
		}},
		"all, none":            {claims: []*claimBuilder{claim("a").want("x", 1), claim("b").wantAll("y").distinct(driver + "/index")}},
		"constraint fails":     {claims: []*claimBuilder{claim("a").want("x", 2).match(color), claim("b").want("y", 2).match(color).cel("broken").define("broken", "1 / 0 == 1")}, message: "division by zero"},
		"selector fails":       {claims: []*claimBuilder{claim("a").want("x", 2).match(color), claim("b").want("y", 1, "1 / 0 == 1")}, message: "division by zero"},
		"all fails":            {claims: []*claimBuilder{claim("a").want("x", 2).admin(), claim("b").wantAll("y").admin().match(color)}, message: "cannot add device"},
		"constraint after two": {claims: []*claimBuilder{claim("a").want("x", 4).match(driver+"/kind").distinct(driver+"/index").cel("never").define("never", "false")}},
	} {
		t.Run(name, func(t *testing.T) {
			var devices []resourceapi.Device
			for i, c := range []string{"red", "red", "blue", "blue", "red"} {
				devices = append(devices, newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": i, "color": c, "kind": 1}))
			}
			s := scenario{slices: []*sliceBuilder{slice("1", devices...)}, claims: test.claims}.search(t)
			found, err := s.run()
			require.False(t, found)
			if test.message == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.message)
			}
			requireUntouched(t, s)
		})
	}
}
