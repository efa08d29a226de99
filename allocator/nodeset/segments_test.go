// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/cases"
)

const (
	clique = "nvidia.com/gpu.clique"
	// trays is the number of nodes in a clique.
	trays = 18
)

// cliquesCase has 1,024 nodes in cliques of 18, and a group that needs segments of eight nodes.
type cliquesCase struct {
	name  string
	pods  int
	nodes []nodeset.Node
	found bool
}

// cliquesCases has some nodes in use: half of them at random, or so many in each clique that the number of segments is known.
func cliquesCases() []cliquesCase {
	random := rand.New(rand.NewPCG(cases.Seed(), 5))
	half := func(int, int) bool { return random.IntN(2) == 0 }
	// segments leaves 16 free nodes in every seventh clique, and seven in the others.
	segments := func(count int) func(int, int) bool {
		return func(rack, at int) bool {
			return at < 7 || at < 16 && rack%7 == 6 && rack/7 < count/2 || at == 7 && rack == 52 && count%2 == 1
		}
	}
	return []cliquesCase{
		{"64 of 1024, half in use", 64, cliquesOf(half), true},
		{"64 of 1024, eight segments", 64, cliquesOf(segments(8)), true},
		{"68 of 1024, eight segments and a rest", 68, cliquesOf(segments(8)), true},
		{"64 of 1024, seven segments", 64, cliquesOf(segments(7)), false},
		{"71 of 1024, seven segments", 71, cliquesOf(segments(7)), false},
		{"256 of 1024, in any clique", 256, cliquesOf(func(int, int) bool { return true }), true},
	}
}

// cliquesOf returns nodes. The names of nodes in a clique are not next to each other.
func cliquesOf(free func(rack, at int) bool) (nodes []nodeset.Node) {
	const count = 1024
	for i := range count {
		// 389 has no factor in common with 1,024.
		at := i * 389 % count
		nodes = append(nodes, nodeset.Node{
			Name: fmt.Sprintf("n%04d", i), Labels: map[string]string{clique: fmt.Sprintf("domain.%d", at/trays)},
			Takes: []bool{free(at/trays, at%trays)},
		})
	}
	return nodes
}

// inSegments requires that the nodes are in segments of eight.
const inSegments = "nodes.segments(8, n, n.labels['" + clique + "'])"

func (c *cliquesCase) search(chooser *nodeset.Chooser, expression, preference string) *nodeset.Search {
	return &nodeset.Search{Chooser: chooser, Nodes: c.nodes, Compiled: compiler(chooser), Group: &nodeset.Group{
		Kinds: []int{c.pods}, Constraint: &v1alpha1.NodeSetConstraint{
			Name: "segments", Expression: expression, Preference: preference, PodsPerNode: 1,
		},
	}}
}

// TestSegmentsOfManyNodes counts steps: the search never backtracks, and without enough segments it does not begin.
func TestSegmentsOfManyNodes(t *testing.T) {
	for _, c := range cliquesCases() {
		t.Run(c.name, func(t *testing.T) {
			chooser, err := nodeset.NewChooser(nil)
			require.NoError(t, err)
			limits, budget := nodeset.Limits()
			search := c.search(chooser, inSegments, "")
			search.Options = limits
			choice, err := search.Choose(t.Context())
			require.NoError(t, err)
			t.Logf("%d steps, %d cost units", budget.Steps(), budget.Cost())
			if !c.found {
				require.Nil(t, choice)
				require.LessOrEqual(t, budget.Steps(), int64(1))
				return
			}
			require.NotNil(t, choice)
			require.LessOrEqual(t, budget.Steps(), int64(c.pods+2))
			require.Len(t, choice.Members, c.pods)
			counts := map[string]int{}
			for _, m := range choice.Members {
				require.True(t, c.nodes[m.Node].Takes[0])
				counts[c.nodes[m.Node].Labels[clique]]++
			}
			rest := 0
			for _, count := range counts {
				if count%8 != 0 {
					rest++
					require.Equal(t, c.pods%8, count%8)
				}
			}
			require.Equal(t, min(1, c.pods%8), rest)
		})
	}
}

// TestSegmentsArePreferred checks that the search finds segments that an expression prefers, and else any nodes.
func TestSegmentsArePreferred(t *testing.T) {
	for _, c := range cliquesCases() {
		if c.pods > 100 {
			continue // The search for a better set of very many nodes takes seconds, for any preference.
		}
		t.Run(c.name, func(t *testing.T) {
			chooser, err := nodeset.NewChooser(nil)
			require.NoError(t, err)
			limits, budget := nodeset.Limits()
			search := c.search(chooser, "nodes.size() > 0", inSegments+" ? 1 : 0")
			search.Options = limits
			choice, err := search.Choose(t.Context())
			require.NoError(t, err)
			require.NotNil(t, choice)
			t.Logf("%d steps, %d cost units", budget.Steps(), budget.Cost())
			require.Equal(t, c.found, choice.Preferences[0].Value == 1)
			require.Equal(t, allocator.PreferenceBest, choice.Outcome)
		})
	}
}

// BenchmarkSegments chooses nodes in segments with compiled expressions, without anything cached about the nodes.
func BenchmarkSegments(b *testing.B) {
	for _, c := range cliquesCases() {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				chooser, err := nodeset.NewChooser(nil)
				require.NoError(b, err)
				search := c.search(chooser, inSegments, "")
				problem, err := nodeset.NewProblem(search.Group, 0, c.pods)
				require.NoError(b, err)
				prepared, err := search.Compiled(b.Context(), problem)
				require.NoError(b, err)
				search.Compiled = func(context.Context, *nodeset.Problem) (*allocator.PreparedClaim, error) { return prepared, nil }
				b.StartTimer()
				choice, err := search.Choose(b.Context())
				require.NoError(b, err)
				require.Equal(b, c.found, choice != nil)
			}
		})
	}
}
