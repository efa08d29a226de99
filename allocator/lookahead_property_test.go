// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// answer is all that a caller gets from an Allocate call, share ids aside.
type answer struct {
	Results []resourceapi.AllocationResult
	Err     string
	// onNode: the error is a reason why the claims don't fit.
	onNode bool
}

// withoutReason leaves out why the claims don't fit: the more a search knows about
// the devices, the more it can say.
func (a answer) withoutReason() answer {
	if a.onNode {
		a.Err = ""
	}
	return a
}

func (s scenario) answer(t testing.TB, opts ...Option) (answer, Stats) {
	t.Helper()
	s.opts = append(opts, WithReasons())
	a := s.allocator(t)
	return answerOf(a.Allocate(t.Context(), s.onNode(), s.apiClaims())), a.Stats()
}

func answerOf(results []resourceapi.AllocationResult, err error) answer {
	for _, result := range results {
		for i := range result.Devices.Results {
			result.Devices.Results[i].ShareID = nil
		}
	}
	if err != nil {
		return answer{Err: err.Error(), onNode: errors.Is(err, structured.ErrFailedAllocationOnNode)}
	}
	return answer{Results: results}
}

// Bounds change nothing but the number of steps: not the devices, not which error
// is met, with all its text. Only the
// reason why the claims don't fit may be a better one.
func TestBoundsChangeNothing(t *testing.T) {
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(200, 1000), func(rt *rapid.T) {
		s := randomScenario(rt)
		want, all := s.answer(t, WithExhaustiveSearch())
		got, some := s.answer(t)
		require.Empty(rt, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(answer{})))
		require.LessOrEqual(rt, some.Evaluations+some.CacheHits, all.Evaluations)
		require.LessOrEqual(rt, some.Steps, all.Steps)
		switch {
		case want.Results == nil && some.Steps < all.Steps:
			seen["cut, not found"]++
		case want.Results == nil:
			seen["not found"]++
		case some.Steps < all.Steps:
			seen["cut, found nevertheless"]++
		default:
			seen["found"]++
		}
	})
	for _, outcome := range []string{"cut, not found", "not found", "found"} {
		require.NotZero(t, seen[outcome], "the generator has lost %q: %v", outcome, seen)
	}
}

// Where a glance at the ordinary devices tells that there are plenty, a look at each device tells the
// same, and learns nothing that was not known.
func TestPlentyIsEnough(t *testing.T) {
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(200, 1000), func(rt *rapid.T) {
		s := randomFreeDevices(rt).search(t)
		r := s.requests[0][0][0]
		for _, c := range s.inventory.Candidates {
			if !oneIn(rt, 3, "skipped") {
				continue
			}
			eligible, err := s.isEligible(0, r, c)
			require.NoError(rt, err)
			if eligible && len(s.solution.choices) < r.Count {
				_, _, err := s.take(0, r, c)
				require.NoError(rt, err)
			}
		}
		switch rapid.IntRange(0, 2).Draw(rt, "judged") {
		case 1:
			s.lookahead.look(r)
		case 2:
			s.lookahead.look(r)
			r.group.lookedAhead = false
		}
		from := rapid.IntRange(0, len(s.inventory.Candidates)).Draw(rt, "from")
		p := place{device: len(s.solution.choices), from: from}
		wanted := rapid.IntRange(1, 70).Draw(rt, "wanted")
		plenty, known := s.lookahead.hasPlenty(p, r, wanted), slices.Clone(r.group.selectors.Known())
		left, _ := s.lookahead.devicesLeft(p, r)
		enough, ordinary := s.lookahead.isEnough(r, left, wanted), 0
		for _, c := range left {
			if r.IsSimple(c) {
				ordinary++
			}
		}
		switch {
		case plenty:
			seen["plenty"]++
			require.True(rt, enough)
			require.Equal(rt, known, r.group.selectors.Known())
		case ordinary >= wanted && len(r.bounding) == 0 && !r.AdminAccess() && slices.Equal(known, r.group.selectors.Known()):
			rt.Fatal("there are plenty")
		case enough:
			seen["enough"]++
		default:
			seen["too few"]++
		}
	})
	require.Len(t, seen, 3, "the generator has lost an outcome: %v", seen)
}

// randomFreeDevices has one request, and devices of which some are in use.
func randomFreeDevices(t *rapid.T) scenario {
	s := scenario{}
	devices := make([]resourceapi.Device, rapid.SampledFrom([]int{1, 5, 63, 64, 65, 127, 128, 129}).Draw(t, "devices"))
	inUse, others := rapid.IntRange(1, 10).Draw(t, "free, of ten"), rapid.Bool().Draw(t, "some are not ordinary")
	for i := range devices {
		devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"root": rapid.IntRange(0, 3).Draw(t, "root"), "kind": rapid.SampledFrom([]string{"gpu", "nic"}).Draw(t, "kind")})
		switch {
		case others && oneIn(t, 4, "shared"):
			shared(&devices[i])
		case others && oneIn(t, 4, "tainted"):
			devices[i].Taints = []resourceapi.DeviceTaint{{Key: "k", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		case rapid.IntRange(1, 10).Draw(t, "in use") > inUse:
			s.inUse = append(s.inUse, devices[i].Name)
		}
	}
	s.slices = []*sliceBuilder{slice("1", devices...)}
	c := claim("c").want("x", rapid.Int64Range(1, 32).Draw(t, "count"), rapid.SampledFrom([][]string{nil, {kind("gpu")}}).Draw(t, "selectors")...)
	if oneIn(t, 6, "admin") {
		c.admin()
	}
	if oneIn(t, 4, "match") {
		c.match("root")
	}
	if oneIn(t, 6, "capacity") {
		c.capacity("memory", "1Gi")
	}
	s.claims = []*claimBuilder{c}
	return s
}

// Sets of requests that must match, and devices that hardly suffice.
func TestBoundsOfMatchingSetsChangeNothing(t *testing.T) {
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(100, 500), func(rt *rapid.T) {
		s := randomMatching(rt)
		want, all := s.answer(t, WithExhaustiveSearch())
		got, some := s.answer(t)
		require.Empty(rt, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(answer{})))
		require.LessOrEqual(rt, some.Steps, all.Steps)
		switch {
		case want.Results != nil:
			seen["found"]++
		case some.Steps < all.Steps:
			seen["cut"]++
		}
	})
	require.NotZero(t, seen["found"], "%v", seen)
	require.NotZero(t, seen["cut"], "%v", seen)
}

// randomMatching has GPUs and NICs on few roots, and requests for one or two of
// them which are to be on one root or on different roots.
func randomMatching(t *rapid.T) scenario {
	s := scenario{}
	lists := oneIn(t, 3, "list attributes")
	if lists {
		s.features = listsOn
	}
	devices := make([]resourceapi.Device, rapid.IntRange(3, 8).Draw(t, "devices"))
	for i := range devices {
		root := any(rapid.IntRange(0, 3).Draw(t, "root"))
		if lists && oneIn(t, 3, "several roots") {
			root = []int64{int64(root.(int)), rapid.Int64Range(0, 3).Draw(t, "other root")}
		}
		devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"root": root, "kind": rapid.SampledFrom([]string{"gpu", "nic"}).Draw(t, "kind")})
		if oneIn(t, 8, "shared") {
			shared(&devices[i])
		}
	}
	s.slices = []*sliceBuilder{slice("1", devices...)}
	c := claim("c")
	n := rapid.IntRange(2, 6).Draw(t, "requests")
	for i := range n {
		c.want(fmt.Sprintf("x-%d", i), rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 0}).Draw(t, "count"), rapid.SampledFrom([][]string{
			{kind("gpu")}, {kind("gpu")}, {kind("nic")}, {kind("nic")}, nil,
		}).Draw(t, "selectors")...)
		if oneIn(t, 12, "admin") {
			c.admin()
		}
	}
	for range rapid.IntRange(1, 4).Draw(t, "constraints") {
		add := rapid.SampledFrom([]func(string, ...string) *claimBuilder{c.match, c.match, c.match, c.distinct}).Draw(t, "constraint")
		covered := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, 3, rapid.ID).Draw(t, "covered")
		var names []string
		for _, i := range covered {
			names = append(names, fmt.Sprintf("x-%d", i))
		}
		add(driver+"/root", names...)
	}
	s.claims = []*claimBuilder{c}
	return s
}
