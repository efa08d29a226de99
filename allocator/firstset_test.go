// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// readAtOnce is for tests of what comes of reading the expression.
func readAtOnce(s *search) *search {
	for _, c := range s.celConstraints {
		c.pruner.first = over
	}
	return s
}

func TestFirstSetIsTried(t *testing.T) {
	const sum = indices + ".sum() == "
	for name, test := range map[string]struct {
		devices    int
		inUse      []string
		claim      *claimBuilder
		expression string
		read       bool
	}{
		"right":                  {8, nil, claim("c").want("x", 4), sum + "6", false},
		"wrong":                  {8, nil, claim("c").want("x", 4), sum + "7", true},
		"right, of two requests": {5, nil, claim("c").want("x", 2).want("y", 2), sum + "6", false},
		"wrong, of two requests": {5, nil, claim("c").want("x", 2).want("y", 2), sum + "7", true},
		"one is in use":          {8, []string{"mla-7"}, claim("c").want("x", 4), sum + "6", true},
		"too many sets":          {10, nil, claim("c").want("x", 4), sum + "6", true},
		"one is taken":           {5, nil, claim("c").want("w", 1).want("x", 2), sum + "3", true},
		"they match as well":     {5, nil, claim("c").want("x", 2).distinct("mla.example.com/index", "x"), sum + "1", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.claim.cel("sum", coveredBy(test.claim)...).define("sum", test.expression)
			s := scenario{slices: []*sliceBuilder{slice("1", ring(test.devices)...)}, inUse: test.inUse, claims: []*claimBuilder{c}}
			want, _ := s.answer(t, WithExhaustiveSearch())
			got, stats := s.answer(t)
			require.Empty(t, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(answer{})))
			require.Equal(t, test.read, stats.TableBuilds > 0, "%+v", stats)
		})
	}
}

// coveredBy are all requests but w.
func coveredBy(c *claimBuilder) []string {
	var names []string
	for _, r := range c.Spec.Devices.Requests {
		if r.Name != "w" {
			names = append(names, r.Name)
		}
	}
	return names
}

func TestFewChoices(t *testing.T) {
	for n := range 40 {
		for k := range 45 {
			want := binomial(n, k)
			if k > n {
				require.Equal(t, 1, fewChoices(n, k), "there are none, and nothing to be tried")
				continue
			}
			if got := fewChoices(n, k); want.IsInt64() && want.Int64() <= fewSets {
				require.EqualValues(t, want.Int64(), got, "%d of %d", k, n)
			} else {
				require.Greater(t, got, fewSets, "%d of %d", k, n)
			}
		}
	}
}

// What is known of a set after its first one has failed is what is known of it if the
// expression was read at once.
func TestCatchingUp(t *testing.T) {
	row := scenario{
		slices: []*sliceBuilder{slice("1", ring(8)...)},
		claims: []*claimBuilder{claim("c").want("x", 3).cel("row").define("row", inARow)},
	}
	require.Equal(t, caughtUp, row.catchUp(t, nil))
	require.Equal(t, caughtUp, row.catchUp(t, []int{2, 3}))
	require.Equal(t, hopeless, row.catchUp(t, []int{2, 5}))
	require.Equal(t, hopeless, row.catchUp(t, []int{7}))
	rapid.Check(t, func(rt *rapid.T) {
		s := prunable(rt)
		s.inUse = nil
		positions := rapid.SliceOfN(rapid.IntRange(0, len(s.slices[0].Spec.Devices)-1), 0, 5).Draw(rt, "members")
		s.catchUp(t, positions)
	})
}

// outcomeOfCatchingUp is what a set is found to be.
type outcomeOfCatchingUp string

const (
	caughtUp outcomeOfCatchingUp = "it may be completed"
	hopeless outcomeOfCatchingUp = "it can't be completed"
	never    outcomeOfCatchingUp = "it can't be a part of a first set that failed, or is not read"
)

// catchUp takes the devices at the positions for the first set of the first constraint, and
// compares what is known then with what is known if the expression was read before.
func (s scenario) catchUp(t *testing.T, positions []int) outcomeOfCatchingUp {
	t.Helper()
	first, atOnce := s.search(t), readAtOnce(s.search(t))
	c, reference := first.celConstraints[0], atOnce.celConstraints[0]
	satisfied, err := first.requests[0][c.first][0].decide()
	require.NoError(t, err)
	if c.pruner.first != beingTried || len(positions) >= c.size() {
		return never
	}
	require.True(t, satisfied)
	hopeful, err := atOnce.requests[0][c.first][0].decide()
	require.NoError(t, err)
	for i, position := range positions {
		r, candidate := c.requestOf(i), first.candidates[position]
		eligible, err := first.isEligible(0, r, candidate)
		require.NoError(t, err)
		if !eligible || i > 0 && c.requestOf(i-1) == r && positions[i-1] > position {
			return never
		}
		_, taken, err := first.take(0, r, candidate)
		require.NoError(t, err)
		require.True(t, taken)
		if hopeful {
			_, hopeful, err = atOnce.take(0, reference.requestOf(i), atOnce.candidates[position])
			require.NoError(t, err)
		}
	}
	c.pruner.first = failed
	c.catchUp()
	got, want := stateOf(c), stateOf(reference)
	switch {
	case !c.pruner.begun:
		require.False(t, reference.pruner.begun)
		return never
	case hopeful:
		require.Empty(t, cmp.Diff(want, got))
		return caughtUp
	}
	for i := range want.Possible[:len(want.Members)] {
		require.Equal(t, want.Possible[i], got.Possible[i], fmt.Sprint("level ", i))
	}
	require.True(t, c.pruner.possible.At(len(c.members)).IsEmpty(), "nothing is tried any more")
	return hopeless
}

// size is the number of devices of a complete set.
func (c *celConstraint) size() int {
	size := 0
	for _, all := range c.covered {
		size += all[0].count
	}
	return size
}
