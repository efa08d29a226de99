// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A trace is the same each time, and wants as much as the load says.
func TestTrace(t *testing.T) {
	for _, mix := range Mixes() {
		trace := NewTrace(mix, 20_000, 800, 0.9, 7)
		require.Equal(t, trace, NewTrace(mix, 20_000, 800, 0.9, 7))
		require.NotEqual(t, trace, NewTrace(mix, 20_000, 800, 0.9, 8))
		demand, sizes, of := 0.0, map[int]int{}, 0.0
		for i, c := range trace.Claims {
			demand += float64(c.Devices) * c.Duration
			sizes[c.Devices]++
			require.True(t, i == 0 || trace.Claims[i-1].Arrival <= c.Arrival)
		}
		require.InDelta(t, 0.9, demand/trace.End/800, 1e-6)
		for _, share := range mix.Shares {
			of += share.Of
			require.InDelta(t, share.Of, float64(sizes[share.Devices])/20_000, 0.01)
		}
		require.InDelta(t, 1, of, 1e-9)
	}
}

func TestSubsets(t *testing.T) {
	require.Equal(t, []Set{0b00101, 0b01001, 0b10001, 0b01100, 0b10100, 0b11000}, slices.Collect(Set(0b11101).subsets(2)))
	for set := range Set(0b111).subsets(1) {
		require.Equal(t, Set(0b001), set)
		break
	}
	require.Empty(t, slices.Collect(Set(0b11).subsets(3)))
}

// line has one device, and gives it to whoever comes.
type line struct{ taken bool }

func (l *line) devices() int { return 1 }
func (l *line) place(int) (placement, bool, error) {
	if l.taken {
		return placement{}, false, nil
	}
	l.taken = true
	return placement{}, true, nil
}
func (l *line) release(placement) { l.taken = false }

// Claims wait in the order of their arrival, and what came in the warm-up is not counted.
func TestRun(t *testing.T) {
	outcome, err := run(&line{}, &Trace{End: 100, Claims: []Claim{
		{Arrival: 0, Duration: 30, Devices: 1}, {Arrival: 25, Duration: 10, Devices: 1}, {Arrival: 26, Duration: 50, Devices: 1}, {Arrival: 95, Duration: 1, Devices: 1},
		{Arrival: 95.5, Duration: 100, Devices: 1}, {Arrival: 99, Duration: 1, Devices: 1},
	}})
	require.NoError(t, err)
	// They begin at 30, 40, 95, 96 and not at all.
	require.Equal(t, map[int]*Tally{1: {Claims: 5, AtOnce: 1, Placed: 4, Waited: 5 + 14 + 0.5 + 1}}, outcome.Sizes)
	require.InDelta(t, (10+10+50+1+4)/80.0, outcome.Busy, 1e-9)
	require.Zero(t, outcome.Stranded)
}

// Idle devices count while a claim waits that wants no more.
func TestStranded(t *testing.T) {
	m := machineNamed(t, "pairs")
	outcome, err := run(newNodes(m, 2, firstNode{always(m.enumerated(func(_, _ Set) []int64 { return nil }))}), &Trace{End: 100, Claims: []Claim{
		{Arrival: 20, Duration: 40, Devices: 1}, {Arrival: 20, Duration: 50, Devices: 8}, {Arrival: 30, Duration: 60, Devices: 8},
		{Arrival: 65, Duration: 5, Devices: 1}, {Arrival: 72, Duration: 2, Devices: 1}, {Arrival: 73, Duration: 1, Devices: 8},
	}})
	require.NoError(t, err)
	// The second one for eight begins at 60, until when seven are idle, which are too few; the third at 75.
	require.Equal(t, &Tally{Claims: 3, AtOnce: 1, Placed: 3, Waited: 30 + 2}, outcome.Sizes[8])
	require.Zero(t, outcome.Stranded)

	outcome, err = run(newNodes(m, 2, firstNode{always(m.enumerated(func(_, _ Set) []int64 { return nil }))}), &Trace{End: 100, Claims: []Claim{
		{Arrival: 20, Duration: 10, Devices: 4}, {Arrival: 20, Duration: 70, Devices: 4}, {Arrival: 20, Duration: 70, Devices: 1}, {Arrival: 25, Duration: 5, Devices: 8},
	}})
	require.NoError(t, err)
	// From 30 to 90 eleven are idle, and no eight of one node.
	require.Equal(t, &Tally{Claims: 1, Placed: 1, Waited: 65}, outcome.Sizes[8])
	require.InDelta(t, 60*11/(16*80.0), outcome.Stranded, 1e-9)
}

// lying chooses what is in use.
type lying struct{}

func (lying) place([]Set, int) (int, Set, error) { return 0, 1, nil }

func TestPoliciesAreNotTrusted(t *testing.T) {
	n := newNodes(machineNamed(t, "ring"), 1, lying{})
	_, placed, err := n.place(1)
	require.NoError(t, err)
	require.True(t, placed)
	_, _, err = n.place(1)
	require.ErrorContains(t, err, "ring, 1 devices: of 11111110 on node 0 the policy chose 1")
}

// Best effort divides all that is idle, and takes the best of the sets.
func TestBestEffort(t *testing.T) {
	m := machineNamed(t, "gpus")
	for _, of := range []struct {
		about    string
		free     Set
		size     int
		expected Set
	}{
		{"a quad", 0b1111_1111, 4, 0b1111},
		{"one is the first", 0b0000_1110, 1, 0b0010},
		{"there are not so many", 0b11, 4, 0},
		{"1 and 2 have two links, and one is left over", 0b0000_0111, 2, 0b0110},
	} {
		c, err := m.bestEffort(0, of.free, of.size)
		require.NoError(t, err)
		require.Equal(t, of.expected, c.set, of.about)
	}
}

// The policy of NVIDIA counts links as we do: of four GPUs it takes a pair of the best two pairs.
func TestBestEffortCountsLinks(t *testing.T) {
	m := machineNamed(t, "gpus")
	for free := range m.all().subsets(4) {
		most := 0
		for pair := range free.subsets(2) {
			most = max(most, m.score(pair)+m.score(free&^pair))
		}
		c, err := m.bestEffort(0, free, 2)
		require.NoError(t, err)
		require.Equal(t, most, m.score(c.set)+m.score(free&^c.set), "of %08b it takes %08b", free, c.set)
		require.GreaterOrEqual(t, m.score(c.set), m.score(free&^c.set), "of %08b it takes %08b", free, c.set)
	}
	// What is left over counts in the sum, and is not taken.
	for free := Set(1); free <= m.all(); free++ {
		for _, size := range []int{1, 2, 3, 4, 8} {
			c, err := m.bestEffort(0, free, size)
			require.NoError(t, err)
			require.True(t, free.has(c.set), "of %08b it takes %08b", free, c.set)
			want := size
			if free.len() < size {
				want = 0
			}
			require.Equal(t, want, c.set.len(), "of %08b it takes %08b", free, c.set)
		}
	}
	_, err := connected([][]int{{0, 70}, {70, 0}})
	require.EqualError(t, err, "no link counts 70, as between 0 and 1")
}

// Nodes that are equal have the same chance.
func TestTies(t *testing.T) {
	m := machineNamed(t, "ring")
	chosen := map[int]int{}
	c := choosing{machine: m, nodes: 3, remembers: map[string]opener{}}
	p, err := c.policy(KeepWholeTies, rand.New(rand.NewPCG(5, 5)))
	require.NoError(t, err)
	for range 900 {
		node, set, err := p.place([]Set{0b1111_1111, 0b1, 0b1, 0b1}, 1)
		require.NoError(t, err)
		require.Equal(t, Set(1), set)
		chosen[node]++
	}
	require.Zero(t, chosen[0], "whose ring is whole")
	for _, node := range []int{1, 2, 3} {
		require.InDelta(t, 300, chosen[node], 60)
	}
}
