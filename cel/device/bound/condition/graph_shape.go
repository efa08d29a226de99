// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/device/library"
)

// A graphShape is a property of a graph, such as that it is connected.
type graphShape interface {
	// find reports whether the chosen devices and some of the possible ones have the shape.
	find(g *graph) matches
	// narrow removes possible devices from keep that are in no such set. find was not none.
	narrow(g *graph, keep bitset.Set)
}

// graph says which members of a list are joined.
type graph struct {
	members
	state *propagate.State
	// rows have for each member those that it is joined to, but for itself.
	rows []bitset.Set
}

// library is the graph of the chosen devices, which are all there will be.
func (g *graph) library() library.Graph {
	number := make(map[int]int, g.chosen.Count())
	for i := range g.chosen.All() {
		number[i] = len(number)
	}
	result := library.NewGraph(len(number))
	for i, a := range number {
		for o := range g.rows[i].All() {
			result.Join(a, number[o])
		}
	}
	return result
}

// matches tells whether a pattern was found.
type matches int

const (
	none matches = iota
	// some: with devices that are to be added, or it is not known.
	some
	// surely: with chosen devices only.
	surely
	// fails: a relation may fail.
	fails
)

// outcomesOf returns the results that a function may have if m was found.
func outcomesOf(m matches) outcome.Outcome {
	switch m {
	case none:
		return outcome.False
	case surely:
		return outcome.True
	default:
		return outcome.True | outcome.False
	}
}
