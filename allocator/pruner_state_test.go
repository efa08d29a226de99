// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/internal/testing/cases"
)

// prunerState is all that a pruner knows of the set as it is and of its parts.
type prunerState struct {
	Begun          bool
	Members        []int
	Chosen         []uint64
	Domain, Forced [][]uint64
}

func stateOf(c *celConstraint) prunerState {
	p := c.pruner
	s := prunerState{Begun: p.begun, Chosen: slices.Clone(p.chosen)}
	for _, member := range c.members {
		s.Members = append(s.Members, member.Position)
	}
	if p.begun {
		for i := range len(c.members) + 1 {
			s.Domain = append(s.Domain, slices.Clone(p.domain.At(i)))
			s.Forced = append(s.Forced, slices.Clone(p.forced.At(i)))
		}
	}
	return s
}

// prunable is a scenario whose first constraint is read.
func prunable(t *rapid.T) scenario {
	c := claim("c")
	requests := rapid.IntRange(1, 3).Draw(t, "requests")
	for i := range requests {
		selectors := rapid.SampledFrom([][]string{nil, nil, {index + " % 2 == 0"}, {index + " > 2"}}).Draw(t, "selectors")
		c.want(string(rune('x'+i)), rapid.Int64Range(1, 3).Draw(t, "count"), selectors...)
	}
	var covered []string
	if requests > 1 && rapid.Bool().Draw(t, "covers some") {
		covered = []string{"x", string(rune('w' + requests))}
	}
	if oneIn(t, 3, "match") {
		c.match(color, "x")
	}
	shape := rapid.SampledFrom([]string{
		inARow, indices + ".sum() > 9", indices + ".sum() % 3 == 0 && " + indices + ".min() > 0",
		"devices.exists_one(d, !devices.exists(o, o.attributes['mla.example.com'].index == d.attributes['mla.example.com'].index + 1))",
		"devices.filter(d, d.attributes['mla.example.com'].index > 3).size() >= 2",
	}).Draw(t, "shape")
	s := scenario{slices: []*sliceBuilder{slice("1", ring(8)...)}, claims: []*claimBuilder{c.cel("shape", covered...).define("shape", shape)}}
	for i := range s.slices[0].Spec.Devices {
		d := &s.slices[0].Spec.Devices[i]
		d.Attributes["color"] = newDevice("", attrs{"color": rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "color")}).Attributes["color"]
	}
	for _, d := range s.slices[0].Spec.Devices {
		if oneIn(t, 6, "in use") {
			s.inUse = append(s.inUse, d.Name)
		}
	}
	return s
}

// Whatever is tried and given back in whatever depth, the pruner is as it was before.
func TestPrunerIsAStack(t *testing.T) {
	refused, undone, reset := 0, 0, 0
	cases.Check(t, func(rt *rapid.T) {
		s := prunable(rt).search(t)
		c := s.celConstraints[0]
		before := stateOf(c)
		var walk func(requests []alternatives)
		// take adds devices to a request, goes on with those after it, and takes all back.
		var take func(r *request, from int, then []alternatives, left int)
		take = func(r *request, from int, then []alternatives, left int) {
			if left == 0 {
				walk(then)
				return
			}
			covered := slices.ContainsFunc(r.decides, func(d contribution) bool { return d.covered })
			if !covered {
				walk(then) // Its devices play no role here.
				return
			}
			for range rapid.IntRange(1, 2).Draw(rt, "tries") {
				position := rapid.IntRange(from, len(s.inventory.Candidates)).Draw(rt, "position")
				position = r.next(position)
				if position >= len(s.inventory.Candidates) {
					continue
				}
				device := s.inventory.Candidates[position]
				if s.available.InUse(0, &r.Request, device) || slices.Contains(c.members, device) {
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
		walk = func(requests []alternatives) {
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
			if !c.pruner.begun {
				reset++
				require.Empty(rt, cmp.Diff(before.Members, stateOf(c).Members))
				requireEmpty(rt, c)
				return
			}
			require.Empty(rt, cmp.Diff(state, stateOf(c)), "undecided")
		}
		walk(s.requests[0])
		requireEmpty(rt, c)
		if c.pruner.chosen != nil {
			require.True(rt, c.pruner.chosen.IsEmpty())
		}
		require.False(rt, c.pruner.begun)
	})
	require.Positive(t, refused)
	require.Positive(t, undone)
	require.Positive(t, reset)
}

// A device of a request may not come after one that is required and that nobody else can
// have.
func TestNextStopsAtRequiredDevices(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(8)...)},
		claims: []*claimBuilder{claim("c").want("x", 2, index+" < 4").want("y", 1, index+" > 1").cel("low").
			define("low", "devices.exists(d, d.attributes['mla.example.com'].index == 1)")},
	}.search(t)
	c, x := s.celConstraints[0], s.requests[0][0][0]
	satisfied, err := x.decide()
	require.NoError(t, err)
	require.True(t, satisfied)
	require.Equal(t, bitset.Set{1 << 1}, c.pruner.forced.At(0))
	require.Equal(t, []int{0, 1, 8, 8}, []int{x.next(0), x.next(1), x.next(2), x.next(8)}, "1 is for x only")

	added, err := c.Add(&x.Request, s.inventory.Candidates[1])
	require.NoError(t, err)
	require.True(t, added)
	require.True(t, c.pruner.forced.At(1).IsEmpty(), "it is there")
	require.Equal(t, []int{2, 2, 3, 4}, []int{x.next(0), x.next(2), x.next(3), x.next(4)})
	c.Remove(s.inventory.Candidates[1])
	require.Equal(t, bitset.Set{1 << 1}, c.pruner.forced.At(0))
	x.undecide(len(x.decides))

	// What a later request can have may be passed over by this one.
	s = scenario{
		slices: []*sliceBuilder{slice("1", ring(8)...)},
		claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1).cel("low").
			define("low", "devices.exists(d, d.attributes['mla.example.com'].index == 1)")},
	}.search(t)
	x = s.requests[0][0][0]
	_, err = x.decide()
	require.NoError(t, err)
	require.Equal(t, bitset.Set{1 << 1}, s.celConstraints[0].pruner.forced.At(0))
	require.Equal(t, []int{2, 5}, []int{x.next(2), x.next(5)})
}
