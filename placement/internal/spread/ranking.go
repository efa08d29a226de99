// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package spread

import "github.com/celset/celset/placement/internal/candidate"

import clusterv1 "open-cluster-management.io/api/cluster/v1"

// Ranking is what picking depends on: the candidates in order of their rank, and in which topologies they are. It is
// kept with the result, because a cluster that moves to another region concerns every Placement that is spread over
// regions, and few of them select it: how clusters rank does not depend on where they are.
type Ranking struct {
	constraints []Constraint
	// places are those of the candidates among the available clusters.
	places []int32
	// in has for each constraint the index of the topology of each candidate, absent for none.
	in [][]int32
	// topologies are by constraint the values that some candidate has or had.
	topologies []values
	// picked are the ranks of the candidates that were selected.
	picked []int32
}

// absent is in place of the index of a cluster that is in no topology.
const absent = -1

// values are strings by the index that each got.
type values struct {
	indexes map[string]int32
	list    []string
}

// index returns the index of a value.
func (v *values) index(value string) int32 {
	i, known := v.indexes[value]
	if !known {
		i = int32(len(v.list))
		v.indexes[value], v.list = i, append(v.list, value)
	}
	return i
}

func newRanking(constraints []Constraint, candidates []*candidate.Candidate) *Ranking {
	r := &Ranking{constraints: constraints, places: make([]int32, len(candidates))}
	for rank, c := range candidates {
		r.places[rank] = c.At()
	}
	for i := range constraints {
		r.in, r.topologies = append(r.in, make([]int32, len(candidates))), append(r.topologies, values{indexes: map[string]int32{}})
		for rank, c := range candidates {
			r.move(i, rank, c.Cluster)
		}
	}
	return r
}

// move has a candidate in the topology of a constraint in which a version of its cluster is.
func (r *Ranking) move(constraint, rank int, of *clusterv1.ManagedCluster) {
	r.in[constraint][rank] = absent
	if value, present := r.constraints[constraint].Topology(of); present {
		r.in[constraint][rank] = r.topologies[constraint].index(value)
	}
}

// valueBytes is about what a value takes in a list and in a map, besides its text.
const valueBytes = 64

// Bytes is about what is kept.
func (r *Ranking) Bytes() int {
	bytes := 4 * len(r.places) * (1 + len(r.in))
	for i := range r.topologies {
		for _, value := range r.topologies[i].list {
			bytes += valueBytes + len(value)
		}
	}
	return bytes
}
