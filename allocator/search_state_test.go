// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/counter"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/internal/testing/cases"
)

// Whatever happened on the way: a search that found nothing has given back all
// that it took, one that found something holds just that.
func TestSearchStateProperty(t *testing.T) {
	outcomes := map[string]int{}
	cases.CheckN(t, cases.Of(100, 500), func(rt *rapid.T) {
		s := randomScenario(rt).searchIfValid(t)
		if s == nil {
			outcomes["refused"]++
			return
		}
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
	require.Len(t, outcomes, 4, "the generator has lost an outcome: %v", outcomes)
}

// requireUntouched demands that nothing is left of what a search took.
func requireUntouched(t require.TestingT, s *search) {
	require.Empty(t, s.solution.choices)
	require.Empty(t, s.solution.decisions)
	for _, count := range s.resultCount {
		require.Zero(t, count)
	}
	for _, c := range s.inventory.Candidates {
		require.False(t, s.available.Taken().Has(c.Position), "device %s", c.ID)
		require.Empty(t, s.available.Shares(c), "device %s", c.ID)
	}
	for _, p := range s.inventory.Pools {
		requireLeft(t, p, counter.New(p, s.isAllocated), s.available.CountersOf(p))
		untouched, groups := counter.NewGroups(p, s.isAllocated), s.available.GroupsOf(p)
		for _, c := range s.inventory.Candidates {
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
	for _, r := range s.allRequests() {
		for _, c := range r.constraints {
			requireEmpty(t, c)
		}
	}
}

// allRequests are the requests of all claims with all their alternatives.
func (s *search) allRequests() []*request {
	var result []*request
	for _, requests := range s.requests {
		result = append(result, slices.Concat(requests...)...)
	}
	return result
}

// requireEmpty demands that a constraint is as it was at the beginning.
func requireEmpty(t require.TestingT, c constraint.Constraint) {
	require.Zero(t, c.Len(), "%T", c)
	if c, ok := c.(*celConstraint); ok {
		require.Zero(t, c.wanted)
		require.Equal(t, len(c.covered), c.undecided)
	}
}

// requireConsistent demands that a successful search holds its solution and no
// more, and that no device is given away twice.
func requireConsistent(t require.TestingT, s *search) {
	byRequest := map[*request]int{}
	byDevice := make([][]choice, len(s.inventory.Candidates))
	shares := sets.New[types.UID]()
	for _, c := range s.solution.choices {
		byDevice[c.Position] = append(byDevice[c.Position], c)
		byRequest[c.request]++
		require.Contains(t, s.solution.decisions, c.request)
		require.Equal(t, c.Shared, c.Share != nil)
		if c.Share != nil {
			require.False(t, shares.Has(*c.Share), "two shares with one id")
			shares.Insert(*c.Share)
		}
	}
	for position, choices := range byDevice {
		requireNotOverbooked(t, s, s.inventory.Candidates[position], choices)
	}
	require.Len(t, s.solution.decisions, len(slices.Concat(s.requests...)))
	for _, r := range s.solution.decisions {
		require.Equal(t, r.Count, byRequest[r], r.Name)
	}
	for _, c := range s.celConstraints {
		require.Zero(t, c.undecided)
		require.Len(t, c.members, c.wanted)
	}
	requireCounters(t, s, byDevice)
}

// requireNotOverbooked is about the choices of one device.
func requireNotOverbooked(t require.TestingT, s *search, c *inventory.Candidate, choices []choice) {
	byClaim, requests := sets.New[int](), sets.New[*request]()
	consumed := capacity.Amounts{}
	for name, amount := range s.allocator.state.AggregatedCapacity[c.ID] {
		consumed[name] = amount.DeepCopy()
	}
	for _, chosen := range choices {
		require.False(t, requests.Has(chosen.request), "%s stands twice in one request", c.ID)
		requests.Insert(chosen.request)
		require.True(t, chosen.request.AdminAccess() || !s.available.Allocated().Has(c.Position), "%s is in use", c.ID)
		if !c.Shared {
			require.False(t, byClaim.Has(chosen.claim), "%s stands twice in one claim", c.ID)
			byClaim.Insert(chosen.claim)
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
		require.Len(t, s.available.Shares(c), len(choices))
		require.False(t, s.available.Taken().Has(c.Position))
	} else {
		require.Equal(t, len(choices) > 0, s.available.Taken().Has(c.Position))
		require.Empty(t, s.available.Shares(c))
	}
}

// requireCounters demands that counters were charged for the choices, once for a
// shared device, and suffice if anything was taken of the pool.
func requireCounters(t require.TestingT, s *search, byDevice [][]choice) {
	for _, p := range s.inventory.Pools {
		charged, groups := counter.New(p, s.isAllocated), counter.NewGroups(p, s.isAllocated)
		for position, choices := range byDevice {
			c := s.inventory.Candidates[position]
			if c.Pool != p || len(c.Device.ConsumesCounters) == 0 {
				continue
			}
			times := len(choices)
			if c.Shared {
				times = min(times, 1)
				if s.allocator.state.IsShared(c.ID) {
					times = 0
				}
			}
			for range times {
				require.True(t, charged.Take(c.Device), "counter of %s exceeded", p)
				require.True(t, groups.Take(c.Device), "%s is not compatible", c.ID)
			}
		}
		requireLeft(t, p, charged, s.available.CountersOf(p))
	}
}

func (s *search) isAllocated(slice *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
	return s.allocator.state.IsAllocated(structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name))
}

// requireLeft demands that the same is left of all counters of a pool.
func requireLeft(t require.TestingT, p *inventory.Pool, want, got *counter.Counters) {
	for counterSet := range p.CounterSets {
		left := got.Left(counterSet)
		for name, amount := range want.Left(counterSet) {
			has := left[name]
			require.Zero(t, amount.Cmp(has), "counter %s of set %s of %s", name, counterSet, p)
		}
	}
}

// searchIfValid is nil if a claim is refused before the search begins.
func (s scenario) searchIfValid(t testing.TB) *search {
	t.Helper()
	a := s.allocator(t)
	has, err := a.inventoryOf(s.onNode())
	require.NoError(t, err)
	result, err := newSearch(t.Context(), a, s.onNode(), has, s.apiClaims())
	if err != nil {
		return nil
	}
	return result
}
