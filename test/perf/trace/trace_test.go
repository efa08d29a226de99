// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/shape"
)

// A plan holds the parameters of traces to simulate.
type plan struct {
	nodes, claimsADevice, traces int
	load                         float64
}

// replay simulates all traces of the plan, and adds up their outcomes.
func (p plan) replay(tb testing.TB, m *Machine, of policy, choose chooser) Outcome {
	tb.Helper()
	sum := Outcome{Sizes: map[int]*Tally{}}
	for seed := range uint64(p.traces) {
		c := newCluster(m, p.nodes, choose)
		if of.anyNode {
			c.chance = rand.New(rand.NewPCG(seed, 1))
		}
		outcome, err := run(c, New(p.claimsADevice*c.devices, c.devices, p.load, seed))
		require.NoError(tb, err, "%s, %s", m.Name, of.name)
		for size, tally := range outcome.Sizes {
			if sum.Sizes[size] == nil {
				sum.Sizes[size] = &Tally{}
			}
			all := sum.Sizes[size]
			all.Claims, all.AtOnce, all.Placed, all.Waited = all.Claims+tally.Claims, all.AtOnce+tally.AtOnce, all.Placed+tally.Placed, all.Waited+tally.Waited
		}
		sum.Stranded += outcome.Stranded / float64(p.traces)
	}
	return sum
}

// BenchmarkTrace simulates three traces for each machine and policy. It reports these values: %at-once is the share of the
// claims for four and eight devices that were placed on arrival. %placed is the share of all claims that were placed before the
// end. min-waited is the average wait of a claim. %idle is Outcome.Stranded.
func BenchmarkTrace(b *testing.B) {
	for _, unit := range []string{"%at-once better=higher", "%placed better=higher", "min-waited better=lower", "%idle better=lower"} {
		fmt.Println("Unit", unit, "assume=exact")
	}
	for _, m := range Machines() {
		for _, of := range policies(m) {
			choose, err := of.chooser(m)
			require.NoError(b, err)
			for _, load := range []float64{0.7, 0.8, 0.9, 0.95} {
				b.Run(fmt.Sprintf("nodes=%s/load=%g/policy=%s", m.Name, load, of.name), func(b *testing.B) {
					outcome := plan{nodes: 100, claimsADevice: 20, traces: 3, load: load}.replay(b, m, of, choose)
					var all, large Tally
					for size, tally := range outcome.Sizes {
						all.Claims, all.Placed, all.Waited = all.Claims+tally.Claims, all.Placed+tally.Placed, all.Waited+tally.Waited
						if size >= 4 {
							large.Claims, large.AtOnce = large.Claims+tally.Claims, large.AtOnce+tally.AtOnce
						}
					}
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(100*float64(large.AtOnce)/float64(large.Claims), "%at-once")
					b.ReportMetric(100*float64(all.Placed)/float64(all.Claims), "%placed")
					b.ReportMetric(all.Waited/float64(all.Claims), "min-waited")
					b.ReportMetric(100*outcome.Stranded, "%idle")
				})
			}
		}
	}
}

// replayed maps machine and policy to the expected results of a small trace. These are the numbers of claims for 1, 2, 4 and 8
// devices that were placed on arrival, and the number of all placed claims.
var replayed = map[string][5]int{
	"pairs/today":                  {270, 39, 33, 0, 386},
	"pairs/first-fit":              {247, 39, 35, 7, 382},
	"pairs/KeepWhole":              {243, 35, 34, 7, 386},
	"pairs/KeepWhole-any-node":     {253, 31, 36, 7, 381},
	"pairs/pool":                   {178, 27, 39, 8, 392},
	"ring/today":                   {270, 41, 28, 1, 386},
	"ring/first-fit":               {240, 32, 37, 7, 388},
	"ring/KeepWhole":               {229, 33, 35, 8, 391},
	"ring/KeepWhole-any-node":      {270, 44, 41, 7, 391},
	"ring/pool":                    {178, 27, 39, 8, 392},
	"mesh/today":                   {561, 87, 67, 5, 799},
	"mesh/first-fit":               {557, 79, 89, 34, 809},
	"mesh/KeepWhole":               {545, 80, 87, 35, 802},
	"mesh/KeepWhole-any-node":      {552, 79, 95, 34, 806},
	"mesh/pool":                    {521, 76, 102, 39, 806},
	"cube-mesh/today":              {270, 45, 33, 0, 384},
	"cube-mesh/first-fit":          {247, 34, 35, 7, 387},
	"cube-mesh/best-effort":        {247, 34, 35, 7, 387},
	"cube-mesh/KeepWhole":          {246, 38, 37, 7, 383},
	"cube-mesh/KeepWhole-any-node": {246, 41, 36, 7, 380},
	"cube-mesh/pool":               {178, 27, 39, 8, 392},
}

func TestReplay(t *testing.T) {
	for _, m := range Machines() {
		for _, of := range policies(m) {
			choose, err := of.chooser(m)
			require.NoError(t, err)
			outcome := plan{nodes: 8, claimsADevice: 8, traces: 1, load: 0.9}.replay(t, m, of, choose)
			var got [5]int
			for i, size := range []int{1, 2, 4, 8} {
				got[i] = outcome.Sizes[size].AtOnce
				got[4] += outcome.Sizes[size].Placed
			}
			require.Equal(t, replayed[m.Name+"/"+of.name], got, "%s/%s", m.Name, of.name)
		}
	}
}

// TestTrace checks that the same parameters give the same trace, and that the requested device time matches the load.
func TestTrace(t *testing.T) {
	trace := New(20_000, 800, 0.9, 7)
	require.Equal(t, trace, New(20_000, 800, 0.9, 7))
	require.NotEqual(t, trace, New(20_000, 800, 0.9, 8))
	demand, sizes := 0.0, map[int]int{}
	for i, c := range trace.Claims {
		demand += float64(c.Devices) * c.Duration
		sizes[c.Devices]++
		require.True(t, i == 0 || trace.Claims[i-1].Arrival <= c.Arrival)
	}
	require.InDelta(t, 0.9, demand/trace.End/800, 1e-6)
	for _, s := range shares {
		require.InDelta(t, s.of, float64(sizes[s.devices])/20_000, 0.01)
	}
}

// TestRun checks that claims of one size get devices in the order of their arrival, and that claims during the warm-up are not
// counted.
func TestRun(t *testing.T) {
	outcome, err := run(&cluster{devices: 1}, &Trace{End: 100, Claims: []Claim{
		{0, 30, 1}, {25, 10, 1}, {26, 50, 1}, {95, 1, 1}, {95.5, 100, 1}, {99, 1, 1},
	}})
	require.NoError(t, err)
	// The claims get devices at the times 30, 40, 95 and 96. The last claim never does.
	require.Equal(t, map[int]*Tally{1: {Claims: 5, AtOnce: 1, Placed: 4, Waited: 5 + 14 + 0.5 + 1}}, outcome.Sizes)
	require.Zero(t, outcome.Stranded)
}

// TestStranded checks that idle devices count only while they are enough for a waiting claim.
func TestStranded(t *testing.T) {
	m := machineNamed(t, "pairs")
	choose, err := policies(m)[1].chooser(m)
	require.NoError(t, err)
	outcome, err := run(newCluster(m, 2, choose), &Trace{End: 100, Claims: []Claim{
		{20, 40, 1}, {20, 50, 8}, {30, 60, 8}, {65, 5, 1}, {72, 2, 1}, {73, 1, 8},
	}})
	require.NoError(t, err)
	// The second claim for eight devices starts at 60. Until then seven devices are idle, which is not enough. The third claim
	// starts at 75.
	require.Equal(t, &Tally{Claims: 3, AtOnce: 1, Placed: 3, Waited: 30 + 2}, outcome.Sizes[8])
	require.Zero(t, outcome.Stranded)

	outcome, err = run(newCluster(m, 2, choose), &Trace{End: 100, Claims: []Claim{{20, 10, 4}, {20, 70, 4}, {20, 70, 1}, {25, 5, 8}}})
	require.NoError(t, err)
	// From 30 to 90 eleven devices are idle. The claim for eight devices waits, because no node has eight idle devices.
	require.Equal(t, &Tally{Claims: 1, Placed: 1, Waited: 65}, outcome.Sizes[8])
	require.InDelta(t, 60*11/(16*80.0), outcome.Stranded, 1e-9)
}

func machineNamed(t *testing.T, name string) *Machine {
	t.Helper()
	all := Machines()
	i := slices.IndexFunc(all, func(m *Machine) bool { return m.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return all[i]
}

// TestAsked checks three properties of machines: the CEL expressions of the class agree with the Go functions, the allocator
// returns the first set in order, and KeepWhole makes as few other sets unusable as possible.
func TestAsked(t *testing.T) {
	for _, m := range Machines() {
		first, err := m.asked()
		require.NoError(t, err)
		whole, err := m.asked(m.keepWhole()...)
		require.NoError(t, err)
		source := rand.New(rand.NewPCG(1, 2))
		for number := range 256 {
			free := shape.Set(number)
			if m.all().Len() > 8 {
				free = shape.Set(source.Uint32()) & m.all()
			}
			for size := range m.sets {
				fitting := slices.DeleteFunc(slices.Clone(m.sets[size]), func(set shape.Set) bool { return free&set != set })
				var best choice
				for _, set := range fitting {
					if values := m.losses(free, set); best.set == 0 || slices.Compare(values, best.values) > 0 {
						best = choice{set, values}
					}
				}
				got, err := first(free, size)
				require.NoError(t, err)
				require.Equal(t, slices.Concat(fitting, []shape.Set{0})[0], got.set, "%s: %d of %b", m.Name, size, free)
				got, err = whole(free, size)
				require.NoError(t, err)
				require.Equal(t, best.set, got.set, "%s: %d of %b", m.Name, size, free)
			}
		}
	}
}

// losses computes the values of the preference KeepWhole for a set, by enumerating all sets. The values are for each size, the
// largest size first. A value is minus the number of free sets that contain a device of taken.
func (m *Machine) losses(free, taken shape.Set) []int64 {
	var values []int64
	for i := len(m.constraints) - 1; i >= 0; i-- {
		lost := int64(0)
		for _, set := range m.sets[m.constraints[i].size] {
			if free&set == set && set&taken != 0 {
				lost--
			}
		}
		values = append(values, lost)
	}
	return values
}
