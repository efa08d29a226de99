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
	caughtUp, hopeless := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		scenario := prunable(rt)
		scenario.inUse = nil
		first, atOnce := scenario.search(t), readAtOnce(scenario.search(t))
		c, reference := first.celConstraints[0], atOnce.celConstraints[0]
		satisfied, err := first.requests[0][c.first][0].decide()
		require.NoError(rt, err)
		if c.pruner.first != beingTried {
			return
		}
		require.True(rt, satisfied)
		hopeful, err := atOnce.requests[0][c.first][0].decide()
		require.NoError(rt, err)
		from := 0
		for i := range rapid.IntRange(0, c.size()-1).Draw(rt, "members") {
			position := rapid.IntRange(from, len(first.candidates)-1).Draw(rt, "position")
			r, candidate := c.requestOf(i), first.candidates[position]
			eligible, err := first.isEligible(0, r, candidate)
			require.NoError(rt, err)
			if !eligible {
				return
			}
			_, taken, err := first.take(0, r, candidate)
			require.NoError(rt, err)
			require.True(rt, taken)
			from = (position + 1) % len(first.candidates)
			if c.requestOf(i+1) != r {
				from = 0
			}
			if hopeful {
				_, hopeful, err = atOnce.take(0, reference.requestOf(i), atOnce.candidates[position])
				require.NoError(rt, err)
			}
		}
		c.pruner.first = failed
		c.catchUp()
		got, want := stateOf(c), stateOf(reference)
		if !c.pruner.begun {
			require.False(rt, reference.pruner.begun, "it is not read by either")
			return
		}
		if hopeful {
			require.Empty(rt, cmp.Diff(want, got))
			caughtUp++
			return
		}
		for i := range want.Possible[:len(want.Members)] {
			require.Equal(rt, want.Possible[i], got.Possible[i], fmt.Sprint("level ", i))
		}
		require.True(rt, c.pruner.possible.at(len(c.members)).IsEmpty(), "nothing is tried any more")
		hopeless++
	})
	require.Positive(t, caughtUp)
	require.Positive(t, hopeless)
}

// size is the number of devices of a complete set.
func (c *celConstraint) size() int {
	size := 0
	for _, all := range c.covered {
		size += all[0].count
	}
	return size
}
