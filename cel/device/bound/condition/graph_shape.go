// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/device/library"
)

// A graphProperty is a property of a graph, such as being connected.
type graphProperty interface {
	// find reports whether the chosen devices can be completed to a set whose graph has the property.
	find(g *graph) matchResult
	// narrow removes possible devices from keep if no such set contains them. find must not have returned none.
	narrow(g *graph, keep bitset.Set)
}

// graph holds the members of a list and their connections.
type graph struct {
	members
	state *propagate.State
	// rows has the devices that each member is joined to, except itself.
	rows []bitset.Set
}

// library returns the graph of the chosen devices, if no device is added.
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

// matchResult is the result of a search for a pattern.
type matchResult int

const (
	none matchResult = iota
	// some means that a match needs devices that are not chosen, or that the search gave up.
	some
	// surely means that the chosen devices are enough.
	surely
	// fails means that a relation may fail.
	fails
)

// outcomesOf returns the outcome of a function for the result of its search.
func outcomesOf(m matchResult) outcome.Outcome {
	switch m {
	case none:
		return outcome.False
	case surely:
		return outcome.True
	default:
		return outcome.True | outcome.False
	}
}
