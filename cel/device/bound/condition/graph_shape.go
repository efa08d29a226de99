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
	// narrow removes a possible device from keep if no completion with the property contains the device. The caller must not
	// call narrow if find returned none.
	narrow(g *graph, keep bitset.Set)
}

// graph holds the members of a list and their connections.
type graph struct {
	members
	state *propagate.State
	// rows has the devices that each member is joined to, except itself.
	rows []bitset.Set
}

// library returns the graph of the chosen devices as the type of package library.
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
	// some means that a match may need further devices, or that the search gave up.
	some
	// surely means that the chosen devices alone match.
	surely
	// fails means that evaluating a relation may fail, so the result may be an error.
	fails
)

// outcomesOf converts the result of a search into the possible outcomes of the function.
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
