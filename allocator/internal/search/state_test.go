// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/counter"
	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/internal/testing/cases"
)

// TestSearchesLeaveNothing checks the state after random searches with each outcome.
func TestSearchesLeaveNothing(t *testing.T) {
	outcomes := map[string]int{}
	cases.CheckN(t, cases.Of(200, 1000), func(rt *rapid.T) {
		outcomes[requireNothingLeft(rt, scenario(fixture.RandomScenario(rt)).searchIfValid(t))]++
	})
	require.Len(t, outcomes, 4, "the generator has lost an outcome: %v", outcomes)
}

// TestSearchesOfTranscriptsLeaveNothing checks the state after the searches in the transcripts of package allocator.
func TestSearchesOfTranscriptsLeaveNothing(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "transcripts", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	outcomes := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for group := range strings.SplitSeq(string(text), "\n== ") {
			common, given, _ := strings.Cut(group, "\n-- ")
			_, common, _ = strings.Cut(common, "\n")
			for one := range strings.SplitSeq(given, "\n-- ") {
				_, one, _ = strings.Cut(one, "\n")
				lines := slices.DeleteFunc(strings.Split(common+"\n"+one, "\n"), func(line string) bool {
					return line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ">")
				})
				d := fixture.DraftOf(t, lines)
				outcomes[requireNothingLeft(t, scenario(d.Scenario).searchIfValid(t))]++
				if d.Also != "" {
					d = fixture.DraftOf(t, append(lines, "with "+d.Also))
					outcomes[requireNothingLeft(t, scenario(d.Scenario).searchIfValid(t))]++
				}
			}
		}
	}
	require.Greater(t, outcomes["found"], 100, "%v", outcomes)
	require.Len(t, outcomes, 4, "%v", outcomes)
}

// requireNothingLeft runs the search and checks its state. A search without a solution must have given back all devices. A
// search with a solution must hold exactly the solution. s is nil for a claim that is refused.
func requireNothingLeft(t require.TestingT, s *Search) (outcome string) {
	if s == nil {
		return "refused"
	}
	switch found, err := s.Run(); {
	case err != nil && strings.Contains(err.Error(), ", preference "): // the set was found before
		return "error"
	case err != nil:
		requireUntouched(t, s)
		return "error"
	case !found:
		requireUntouched(t, s)
		return "none"
	default:
		requireConsistent(t, s)
		return "found"
	}
}

// requireUntouched requires that the search has taken no device and that all its constraints are empty.
func requireUntouched(t require.TestingT, s *Search) {
	require.Empty(t, s.Solution.Choices)
	require.Empty(t, s.Solution.Decisions)
	for _, count := range s.resultCount {
		require.Zero(t, count)
	}
	for _, c := range s.Inventory.Candidates {
		require.False(t, s.Available.Taken().Has(c.Position), "device %s", c.ID)
		require.Empty(t, s.Available.Shares(c), "device %s", c.ID)
	}
	for _, p := range s.Inventory.Pools {
		requireLeft(t, p, counter.New(p, isAllocated(s)), s.Available.CountersOf(p))
		untouched, groups := counter.NewGroups(p, isAllocated(s)), s.Available.GroupsOf(p)
		for _, c := range s.Inventory.Candidates {
			if c.Pool != p || len(c.Device.ConsumesCounters) == 0 {
				continue
			}
			fits := untouched.Take(c.Device)
			require.Equal(t, fits, groups.Take(c.Device), "device %s", c.ID)
			if fits {
				untouched.GiveBack()
				groups.GiveBack()
			}
		}
	}
	for _, r := range allRequests(s) {
		for _, c := range r.constraints {
			requireEmpty(t, c)
		}
	}
}

// allRequests returns all alternatives of the requests of all claims.
func allRequests(s *Search) []*Request {
	var result []*Request
	for _, requests := range s.Requests {
		result = append(result, slices.Concat(requests...)...)
	}
	return result
}

// requireEmpty requires that a constraint is in its initial state.
func requireEmpty(t require.TestingT, c constraint.Constraint) {
	require.Zero(t, c.Len(), "%T", c)
	if c, ok := c.(*CELConstraint); ok {
		require.Zero(t, c.wanted)
		require.Equal(t, len(c.covered), c.undecided)
	}
}

// requireConsistent requires that a successful search holds exactly its solution, and that no device is allocated twice.
func requireConsistent(t require.TestingT, s *Search) {
	byRequest := map[*Request]int{}
	byDevice := make([][]Choice, len(s.Inventory.Candidates))
	shares := sets.New[types.UID]()
	for _, c := range s.Solution.Choices {
		byDevice[c.Position] = append(byDevice[c.Position], c)
		byRequest[c.Request]++
		require.Contains(t, s.Solution.Decisions, c.Request)
		require.Equal(t, c.Shared, c.Share != nil)
		if c.Share != nil {
			require.False(t, shares.Has(*c.Share), "two shares with one id")
			shares.Insert(*c.Share)
		}
	}
	for position, choices := range byDevice {
		requireNotOverbooked(t, s, s.Inventory.Candidates[position], choices)
	}
	require.Len(t, s.Solution.Decisions, len(slices.Concat(s.Requests...)))
	for _, r := range s.Solution.Decisions {
		require.Equal(t, r.Count, byRequest[r], r.Name)
	}
	for _, c := range s.celConstraints {
		require.Zero(t, c.undecided)
		require.Len(t, c.members, c.wanted)
	}
	requireCounters(t, s, byDevice)
}

// requireNotOverbooked checks that the choices of one device don't exceed the device.
func requireNotOverbooked(t require.TestingT, s *Search, c *inventory.Candidate, choices []Choice) {
	byClaim, requests := sets.New[int](), sets.New[*Request]()
	consumed := capacity.Amounts{}
	for name, amount := range s.Planner.State.AggregatedCapacity[c.ID] {
		consumed[name] = amount.DeepCopy()
	}
	for _, chosen := range choices {
		require.False(t, requests.Has(chosen.Request), "%s stands twice in one request", c.ID)
		requests.Insert(chosen.Request)
		require.True(t, chosen.Request.AdminAccess() || !s.Available.Allocated().Has(c.Position), "%s is in use", c.ID)
		if !c.Shared {
			require.False(t, byClaim.Has(chosen.Claim), "%s stands twice in one claim", c.ID)
			byClaim.Insert(chosen.Claim)
		}
		for name, amount := range chosen.Consumed {
			total := consumed[name]
			total.Add(amount)
			consumed[name] = total
		}
	}
	for name, total := range consumed {
		require.LessOrEqual(t, total.Cmp(c.Device.Capacity[name].Value), 0, "%s: %s", c.ID, name)
	}
	if c.Shared {
		require.Len(t, s.Available.Shares(c), len(choices))
		require.False(t, s.Available.Taken().Has(c.Position))
	} else {
		require.Equal(t, len(choices) > 0, s.Available.Taken().Has(c.Position))
		require.Empty(t, s.Available.Shares(c))
	}
}

// requireCounters requires that the search charged the counters for its devices: once for a shared device, and never for admin
// access. The counters of a pool must suffice if the search took a device of the pool.
func requireCounters(t require.TestingT, s *Search, byDevice [][]Choice) {
	for _, p := range s.Inventory.Pools {
		charged, groups := counter.New(p, isAllocated(s)), counter.NewGroups(p, isAllocated(s))
		for position, choices := range byDevice {
			c := s.Inventory.Candidates[position]
			if c.Pool != p || len(c.Device.ConsumesCounters) == 0 {
				continue
			}
			times := 0
			for _, choice := range choices {
				if !choice.Request.AdminAccess() {
					times++
				}
			}
			if c.Shared {
				times = min(times, 1)
				if s.Planner.State.IsShared(c.ID) {
					times = 0
				}
			}
			for range times {
				require.True(t, charged.Take(c.Device), "counter of %s exceeded", p)
				require.True(t, groups.Take(c.Device), "%s is not compatible", c.ID)
			}
		}
		requireLeft(t, p, charged, s.Available.CountersOf(p))
	}
}

func isAllocated(s *Search) func(*resourceapi.ResourceSlice, *resourceapi.Device) bool {
	return func(slice *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
		return s.Planner.State.IsAllocated(structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name))
	}
}

// requireLeft requires that two states of a pool's counters have the same remaining amounts.
func requireLeft(t require.TestingT, p *inventory.Pool, want, got *counter.Counters) {
	for counterSet := range p.CounterSets {
		left := got.Left(counterSet)
		for name, amount := range want.Left(counterSet) {
			has := left[name]
			require.Zero(t, amount.Cmp(has), "counter %s of set %s of %s", name, counterSet, p)
		}
	}
}

// prunerState is a comparable copy of a pruner's state for the current set and all its prefixes.
type prunerState struct {
	Begun          bool
	Members        []int
	Chosen         []uint64
	Domain, Forced [][]uint64
}

func stateOf(c *CELConstraint) prunerState {
	p := c.pruner
	s := prunerState{Begun: p.active, Chosen: slices.Clone(p.chosen)}
	for _, member := range c.members {
		s.Members = append(s.Members, member.Position)
	}
	if p.active {
		for i := range len(c.members) + 1 {
			s.Domain = append(s.Domain, slices.Clone(p.domain.At(i)))
			s.Forced = append(s.Forced, slices.Clone(p.forced.At(i)))
		}
	}
	return s
}

// prunable draws a scenario whose first constraint has bounds.
func prunable(t *rapid.T) scenario {
	c := claim("c")
	requests := rapid.IntRange(1, 3).Draw(t, "requests")
	for i := range requests {
		selectors := rapid.SampledFrom([][]string{nil, nil, {index + " % 2 == 0"}, {index + " > 2"}}).Draw(t, "selectors")
		c.Want(string(rune('x'+i)), rapid.Int64Range(1, 3).Draw(t, "count"), selectors...)
	}
	var covered []string
	if requests > 1 && rapid.Bool().Draw(t, "covers some") {
		covered = []string{"x", string(rune('w' + requests))}
	}
	if oneIn(t, 3, "match") {
		c.Match(color, "x")
	}
	shape := rapid.SampledFrom([]string{
		inARow, indices + ".sum() > 9", indices + ".sum() % 3 == 0 && " + indices + ".min() > 0",
		"devices.exists_one(d, !devices.exists(o, o.attributes['mla.example.com'].index == d.attributes['mla.example.com'].index + 1))",
		"devices.filter(d, d.attributes['mla.example.com'].index > 3).size() >= 2",
	}).Draw(t, "shape")
	s := scenario{Slices: []*sliceBuilder{slice("1", ring(8)...)}, Claims: []*claimBuilder{c.Cel("shape", covered...).Define("shape", shape)}}
	for i := range s.Slices[0].Spec.Devices {
		d := &s.Slices[0].Spec.Devices[i]
		d.Attributes["color"] = newDevice("", attrs{"color": rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "color")}).Attributes["color"]
	}
	for _, d := range s.Slices[0].Spec.Devices {
		if oneIn(t, 6, "in use") {
			s.InUse = append(s.InUse, d.Name)
		}
	}
	return s
}

// After devices were taken and given back in any order, the pruner has the same state as before.
func TestPrunerIsAStack(t *testing.T) {
	refused, undone, reset := 0, 0, 0
	cases.Check(t, func(rt *rapid.T) {
		s := prunable(rt).search(t)
		c := s.celConstraints[0]
		before := stateOf(c)
		var walk func(requests []Alternatives)
		// take adds left devices to a request, calls walk for the requests after it, and gives all devices back.
		var take func(r *Request, from int, then []Alternatives, left int)
		take = func(r *Request, from int, then []Alternatives, left int) {
			if left == 0 {
				walk(then)
				return
			}
			covered := slices.ContainsFunc(r.decides, func(d contribution) bool { return d.covered })
			if !covered {
				walk(then) // The devices of this request make no difference.
				return
			}
			for range rapid.IntRange(1, 2).Draw(rt, "tries") {
				position := rapid.IntRange(from, len(s.Inventory.Candidates)).Draw(rt, "position")
				position = r.next(position)
				if position >= len(s.Inventory.Candidates) {
					continue
				}
				device := s.Inventory.Candidates[position]
				if s.Available.InUse(0, &r.Request, device) || slices.Contains(c.members, device) {
					continue
				}
				state := stateOf(c)
				added, err := c.Add(&r.Request, device)
				require.NoError(rt, err)
				if !added {
					refused++
					require.Empty(rt, cmp.Diff(state, stateOf(c)), "refused")
					continue
				}
				take(r, position+1, then, left-1)
				c.Remove(device)
				undone++
				require.Empty(rt, cmp.Diff(state, stateOf(c)), "given back")
			}
		}
		walk = func(requests []Alternatives) {
			if len(requests) == 0 {
				return
			}
			r := requests[0][0]
			state := stateOf(c)
			satisfied, err := r.decide()
			require.NoError(rt, err)
			if !satisfied {
				refused++
				require.Empty(rt, cmp.Diff(state.Members, stateOf(c).Members))
				return
			}
			take(r, 0, requests[1:], r.Count)
			r.undecide(len(r.decides))
			if !c.pruner.active {
				reset++
				require.Empty(rt, cmp.Diff(before.Members, stateOf(c).Members))
				requireEmpty(rt, c)
				return
			}
			require.Empty(rt, cmp.Diff(state, stateOf(c)), "undecided")
		}
		walk(s.Requests[0])
		requireEmpty(rt, c)
		if c.pruner.chosen != nil {
			require.True(rt, c.pruner.chosen.IsEmpty())
		}
		require.False(rt, c.pruner.active)
	})
	require.Positive(t, refused)
	require.Positive(t, undone)
	require.Positive(t, reset)
}

// A request must not skip a forced device that no later request can get.
func TestNextStopsAtRequiredDevices(t *testing.T) {
	s := given(t, "devices 8 mla-# index=#; claim c; want x 2 if $device.index < 4; want y 1 if $device.index > 1; cel low = devices.exists(d, $at.index == 1)").search(t)
	c, x := s.celConstraints[0], s.Requests[0][0][0]
	satisfied, err := x.decide()
	require.NoError(t, err)
	require.True(t, satisfied)
	require.Equal(t, bitset.Set{1 << 1}, c.pruner.forced.At(0))
	require.Equal(t, []int{0, 1, 8, 8}, []int{x.next(0), x.next(1), x.next(2), x.next(8)}, "1 is for x only")

	added, err := c.Add(&x.Request, s.Inventory.Candidates[1])
	require.NoError(t, err)
	require.True(t, added)
	require.True(t, c.pruner.forced.At(1).IsEmpty(), "it is there")
	require.Equal(t, []int{2, 2, 3, 4}, []int{x.next(0), x.next(2), x.next(3), x.next(4)})
	c.Remove(s.Inventory.Candidates[1])
	require.Equal(t, bitset.Set{1 << 1}, c.pruner.forced.At(0))
	x.undecide(len(x.decides))

	// A request may skip a forced device that a later request can get.
	s = given(t, "devices 8 mla-# index=#; claim c; want x 1; want y 1; cel low = devices.exists(d, $at.index == 1)").search(t)
	x = s.Requests[0][0][0]
	_, err = x.decide()
	require.NoError(t, err)
	require.Equal(t, bitset.Set{1 << 1}, s.celConstraints[0].pruner.forced.At(0))
	require.Equal(t, []int{2, 5}, []int{x.next(2), x.next(5)})
}
