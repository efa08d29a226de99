// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/meter"
)

// bipartite returns a graph of two groups. Each element is joined to all elements of the other group, and to none of its own.
func bipartite(one, other int) Graph {
	g := NewGraph(one + other)
	for a := range one {
		for b := range other {
			g.Join(a, one+b)
		}
	}
	return g
}

// torus returns a torus of rows and columns, joined to their neighbours around the ends.
func torus(rows, columns int) Graph {
	g := NewGraph(rows * columns)
	for r := range rows {
		for c := range columns {
			g.Join(r*columns+c, r*columns+(c+1)%columns)
			g.Join(r*columns+c, (r+1)%rows*columns+c)
		}
	}
	return g
}

// TestSearchEnds checks that the search ends if there is no ring, and that it finds the rings of real machines.
func TestSearchEnds(t *testing.T) {
	c := newCircle(bipartite(15, 17), 0)
	found, ended := c.find()
	require.False(t, found || ended)
	require.Equal(t, MaxSteps+1, min(c.steps, MaxSteps+1))
	require.LessOrEqual(t, len(c.dead), MaxSteps)

	require.True(t, bipartite(16, 16).Ring())
	for _, rows := range []int{2, 4, 6, 7} {
		for _, columns := range []int{2, 3, 4, 8, 9} {
			if rows*columns > MaxCircle {
				continue
			}
			c := newCircle(torus(rows, columns), 0)
			found, _ := c.find()
			require.True(t, found, "%dx%d", rows, columns)
			require.Less(t, c.steps, 1000, "%dx%d", rows, columns)
			require.True(t, torus(rows, columns).Path(), "%dx%d", rows, columns)
		}
	}
}

// TestSmallSearchesEndByThemselves checks that nine elements have fewer partial ways than the limit.
func TestSmallSearchesEndByThemselves(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	most := 0
	for range 20_000 {
		n := 7 + random.IntN(3)
		g := NewGraph(n)
		dense := 2 + random.IntN(5)
		for a := range n {
			for b := range a {
				if random.IntN(8) < dense {
					g.Join(a, b)
				}
			}
		}
		for added := range 2 {
			c := newCircle(g, added)
			_, ended := c.find()
			require.True(t, ended)
			most = max(most, c.steps)
		}
	}
	t.Logf("%d steps at most", most)
	require.Less(t, most, MaxSteps)
}

// TestSearchIsCharged checks that the charge for a ring or a path covers [MaxSteps] steps of 600 ns each.
func TestSearchIsCharged(t *testing.T) {
	of := meter.Call{First: meter.Operand{Size: MaxCircle, Deep: 1 + MaxCircle*(1+MaxCircle)}}
	for _, function := range []string{Ring, Path} {
		search := meter.LoadOf(function, of).Nanoseconds - meter.LoadOf(Connected, of).Nanoseconds
		require.InDelta(t, 600*MaxSteps, search, 1, function)
	}
}

func BenchmarkCircle(b *testing.B) {
	for _, sizes := range [][2]int{{3, 5}, {7, 9}, {15, 17}, {31, 32}} {
		b.Run(fmt.Sprintf("%d and %d", sizes[0], sizes[1]), func(b *testing.B) {
			g := bipartite(sizes[0], sizes[1])
			b.ReportAllocs()
			for b.Loop() {
				g.Ring()
			}
		})
	}
}
