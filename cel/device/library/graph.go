// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import "github.com/celset/celset/cel/device/bitset"

// Graph is an undirected graph of the elements 0 to n-1.
type Graph struct {
	// rows[i] has the elements that element i is joined to. No element is joined to itself.
	rows []bitset.Set
}

// NewGraph returns a graph without links.
func NewGraph(n int) Graph {
	g := Graph{rows: make([]bitset.Set, n)}
	for i := range g.rows {
		g.rows[i] = bitset.New(n)
	}
	return g
}

// Len returns the number of elements.
func (g Graph) Len() int { return len(g.rows) }

// Join joins two elements, in both directions.
func (g Graph) Join(a, b int) {
	if a != b {
		g.rows[a].Add(b)
		g.rows[b].Add(a)
	}
}

// Connected reports whether every element can be reached from the first.
func (g Graph) Connected() bool {
	if g.Len() == 0 {
		return true
	}
	reached, next := bitset.New(g.Len()), []int{0}
	reached.Add(0)
	for len(next) > 0 {
		from := next[len(next)-1]
		next = next[:len(next)-1]
		for to := range g.rows[from].All() {
			if !reached.Has(to) {
				reached.Add(to)
				next = append(next, to)
			}
		}
	}
	return reached.Count() == g.Len()
}

// Clique reports whether every two elements are joined.
func (g Graph) Clique() bool {
	for _, row := range g.rows {
		if row.Count() != g.Len()-1 {
			return false
		}
	}
	return true
}
