// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package spread

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement/internal/candidate"
)

// Ranking has the candidates in order of their rank, with their topologies: all on which picking depends. It is kept with
// a result. A cluster that moves to another region concerns every Placement that is spread over regions, and changes the
// selection of few of them. The ranks don't depend on topologies, so that only picking is repeated.
type Ranking struct {
	constraints []Constraint
	// places has the index of each candidate among the available clusters.
	places []int32
	// in has, for each constraint, the index of the topology of each candidate. It is absent if the candidate has none.
	in [][]int32
	// topologies has, for each constraint, the values that some candidate has or had.
	topologies []values
	// picked are the ranks of the candidates that were picked.
	picked []int32
}

// absent is the index of the topology of a cluster that is in none.
const absent = -1

// values numbers strings in the order in which they come.
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

// move sets the topology of a candidate for one constraint, from a version of its cluster.
func (r *Ranking) move(constraint, rank int, of *clusterv1.ManagedCluster) {
	r.in[constraint][rank] = absent
	if value, present := r.constraints[constraint].Topology(of); present {
		r.in[constraint][rank] = r.topologies[constraint].index(value)
	}
}

// valueBytes is an estimate of the memory that a value takes in a list and in a map, besides its text.
const valueBytes = 64

// Bytes returns an estimate of the memory that the ranking takes.
func (r *Ranking) Bytes() int {
	bytes := 4 * len(r.places) * (1 + len(r.in))
	for i := range r.topologies {
		for _, value := range r.topologies[i].list {
			bytes += valueBytes + len(value)
		}
	}
	return bytes
}
