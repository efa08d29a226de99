// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
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

// requireUntouched demands that nothing is left of what a search took.
func requireUntouched(t require.TestingT, s *search) {
	require.Empty(t, s.choices)
	for position, by := range s.takenBy {
		require.Empty(t, by, "device %s", s.candidates[position].id)
	}
	for _, r := range slices.Concat(s.requests...) {
		for _, c := range r.constraints {
			switch c := c.(type) {
			case *matchAttribute:
				require.Zero(t, c.devices)
			case *distinctAttribute:
				require.Empty(t, c.values)
			case *celConstraint:
				require.Empty(t, c.members)
				require.Empty(t, c.values)
			default:
				require.Fail(t, "unknown constraint", "%T", c)
			}
		}
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

// randomClaim has requests and constraints that often can't be met together and
// sometimes fail.
func randomClaim(t *rapid.T, name string) *claimBuilder {
	c := claim(name)
	for i := range rapid.IntRange(1, 3).Draw(t, "requests") {
		request := fmt.Sprintf("%s-%d", name, i)
		if rapid.IntRange(0, 5).Draw(t, "all") == 0 {
			// Selectors of "all" fail before the search.
			c.wantAll(request, rapid.SampledFrom([][]string{nil, {index + " % 2 == 0"}}).Draw(t, "selectors of all")...)
		} else {
			selectors := rapid.SampledFrom([][]string{nil, nil, {index + " % 2 == 0"}, {"1 / (" + index + " - 4) < 2"}}).Draw(t, "selectors")
			c.want(request, rapid.Int64Range(1, 3).Draw(t, "count"), selectors...)
		}
		if rapid.IntRange(0, 3).Draw(t, "admin") == 0 {
			c.admin()
		}
	}
	c.define("row", inARow).define("even", indices+".sum() % 2 == 0").define("never", "false").
		define("broken", "1 / ("+indices+"[0] - 1) < 2")
	for range rapid.IntRange(0, 3).Draw(t, "constraints") {
		var covered []string
		if rapid.Bool().Draw(t, "covers one") {
			covered = []string{rapid.SampledFrom(c.Spec.Devices.Requests).Draw(t, "covered").Name}
		}
		add := rapid.SampledFrom([]func(string, ...string) *claimBuilder{c.match, c.distinct}).Draw(t, "attribute constraint")
		switch kind := rapid.SampledFrom([]string{"color", "index", "row", "even", "never", "broken"}).Draw(t, "constraint"); kind {
		case "color", "index":
			add(driver+"/"+kind, covered...)
		default:
			c.cel(kind, covered...)
		}
	}
	return c
}

func randomScenario(t *rapid.T) scenario {
	var s scenario
	var devices []resourceapi.Device
	for i := range rapid.IntRange(1, 6).Draw(t, "devices") {
		devices = append(devices, newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": i, "color": rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "color")}))
		if rapid.IntRange(0, 4).Draw(t, "in use") == 0 {
			s.inUse = append(s.inUse, devices[i].Name)
		}
	}
	s.slices = []*sliceBuilder{slice("1", devices...)}
	for i := range rapid.IntRange(1, 2).Draw(t, "claims") {
		s.claims = append(s.claims, randomClaim(t, string(rune('a'+i))))
	}
	return s
}

// Whatever happened on the way: a search that found nothing has given back all
// that it took, one that found something holds just that.
func TestSearchStateProperty(t *testing.T) {
	outcomes := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		s := randomScenario(rt).search(t)
		found, err := s.run()
		switch {
		case err != nil:
			outcomes["error"]++
			requireUntouched(rt, s)
		case !found:
			outcomes["none"]++
			requireUntouched(rt, s)
		default:
			outcomes["found"]++
			requireConsistent(rt, s)
		}
	})
	require.Len(t, outcomes, 3, "the generator has lost an outcome: %v", outcomes)
}

// requireConsistent demands that a successful search holds its solution and no
// more.
func requireConsistent(t require.TestingT, s *search) {
	taken := make([]int, len(s.candidates))
	byRequest := map[*request]int{}
	for _, c := range s.choices {
		taken[c.position]++
		byRequest[c.request]++
		require.True(t, c.request.adminAccess() || !s.allocated[c.position], "%s is in use", c.id)
	}
	for position, by := range s.takenBy {
		require.Len(t, by, taken[position])
		require.Len(t, sets.New(by...), len(by), "%s stands twice in one claim", s.candidates[position].id)
	}
	for _, r := range slices.Concat(s.requests...) {
		require.Equal(t, r.count, byRequest[r], r.name)
	}
	for _, c := range s.celConstraints {
		require.Len(t, c.values, c.wanted)
	}
}
