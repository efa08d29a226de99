// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package spread

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement/internal/candidate"
)

// Ranking holds the candidates in rank order, with their topologies. Picking depends on nothing else. A Ranking is stored with
// a result. A cluster that moves to another region concerns every Placement that is spread over regions, but changes few
// selections. Ranks don't depend on topologies, so only the picking must be repeated to find out whether the selection changes.
type Ranking struct {
	constraints []Constraint
	// places holds the index of each candidate in the list of available clusters.
	places []int32
	// in[c][r] is the topology of the candidate with rank r for constraint c: an index in topologies[c], or absent.
	in [][]int32
	// topologies[c] has the values that candidates have, or had, for the key of constraint c.
	topologies []values
	// picked holds the ranks of the picked candidates.
	picked []int32
}

// absent is the topology of a cluster that lacks the key.
const absent = -1

// values numbers distinct strings in the order of their first additions.
type values struct {
	indexes map[string]int32
	list    []string
}

// index returns the number of a value. It adds the value if it is new.
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

// move sets the topology of the candidate with this rank to the cluster's current topology, for one constraint.
func (r *Ranking) move(constraint, rank int, of *clusterv1.ManagedCluster) {
	r.in[constraint][rank] = absent
	if value, present := r.constraints[constraint].Topology(of); present {
		r.in[constraint][rank] = r.topologies[constraint].index(value)
	}
}

// valueBytes is the estimated size in bytes of a value in values, without its text.
const valueBytes = 64

// Bytes returns the estimated size of the ranking in bytes.
func (r *Ranking) Bytes() int {
	bytes := 4 * len(r.places) * (1 + len(r.in))
	for i := range r.topologies {
		for _, value := range r.topologies[i].list {
			bytes += valueBytes + len(value)
		}
	}
	return bytes
}
