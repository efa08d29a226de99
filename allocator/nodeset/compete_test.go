// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/internal/testing/cases"
)

// competing is a problem whose nodes share devices: some nodes have a switch, and all pods on nodes with the same switch need
// its ports.
type competing struct {
	*problem
	switches []int
	ports    [2]int
}

func (c *competing) Compete() bool { return true }

func (c *competing) Together(_ context.Context, members []nodeset.Member) (bool, error) {
	var used [2]int
	for _, m := range members {
		for kind, n := range m.Load {
			used[c.switches[m.Node]] += n * (kind + 1)
		}
	}
	return used[0] <= c.ports[0] && used[1] <= c.ports[1], nil
}

func (c *competing) fits(loads []nodeset.Load) bool {
	var members []nodeset.Member
	for i, load := range loads {
		members = append(members, nodeset.Member{Node: i, Load: load})
	}
	fits, _ := c.Together(context.Background(), members)
	return fits
}

// TestCompetingRoles compares groups with roles, segments, running pods and preferences on nodes that share devices with trying
// all assignments.
func TestCompetingRoles(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	seen, none := 0, 0
	cases.CheckN(t, cases.Of(100, 2000), func(t *rapid.T) {
		perNode := rapid.IntRange(1, 2).Draw(t, "most")
		prefers := rapid.Bool().Draw(t, "prefers")
		c := &competing{problem: drawRoles(t, 8-2*perNode, perNode, prefers)}
		for range c.nodes {
			c.switches = append(c.switches, rapid.IntRange(0, 1).Draw(t, "switch"))
		}
		c.ports = [2]int{rapid.IntRange(0, 6).Draw(t, "ports"), rapid.IntRange(0, 6).Draw(t, "ports")}
		if rapid.Bool().Draw(t, "segments") {
			c.group.Constraint.Expression += fmt.Sprintf(" && nodes.filter(n, n.pods.exists(p, p.labels.role != 'c')).segments(%d, n, n.labels.rack)", rapid.IntRange(1, 3).Draw(t, "size"))
		}
		found, best, count, failed := false, int64(0), 0, false
		for _, count = range []int{nodeset.Load(c.group.Kinds).Pods(), c.group.Least} {
			c.assignments(count, func(loads []nodeset.Load) {
				if !c.fits(loads) {
					return
				}
				holds, value, fails := c.verdict(t, chooser.Environment(), loads)
				failed = failed || fails
				if holds && (!found || value > best) {
					found, best = true, value
				}
			})
			if found || failed {
				break
			}
		}
		if failed {
			return
		}
		search := c.search(chooser)
		search.Hosts = c
		choice, err := search.Choose(context.Background())
		require.NoError(t, err)
		require.Equal(t, found, choice != nil, "%+v", c.group.Constraint)
		if !found {
			none++
			return
		}
		seen++
		require.Equal(t, count, choice.Pods)
		loads := make([]nodeset.Load, len(c.nodes))
		for i := range loads {
			loads[i] = make(nodeset.Load, len(c.group.Kinds))
		}
		for _, m := range choice.Members {
			loads[m.Node] = m.Load
		}
		require.True(t, c.fits(loads))
		holds, value, _ := c.verdict(t, chooser.Environment(), loads)
		require.True(t, holds, "%+v: %+v", c.group.Constraint, choice.Members)
		if prefers {
			require.Equal(t, best, value, "%+v", c.group.Constraint)
		}
		seats := search.Seats(context.Background(), choice)
		for kind, n := range choice.Kinds {
			require.Len(t, seats[kind], n)
		}
	})
	t.Logf("%d sets, %d times none", seen, none)
	require.Positive(t, seen)
	require.Positive(t, none)
}
