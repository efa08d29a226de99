// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"iter"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement/internal/hub"
)

// Candidate is a cluster that passed the filters.
type Candidate struct {
	Cluster *clusterv1.ManagedCluster
	// ClusterSet is the first of the eligible ManagedClusterSets that it is in.
	ClusterSet string
	// Predicate is the index of the first predicate that matches it, -1 if the
	// Placement has none.
	Predicate int
	// Scores are those of the result's prioritizers, in their order, before weighting.
	Scores []int64
	// Total is the sum of the weighted scores.
	Total int64
	// Avoided is the first taint with the effect PreferNoSelect that is not tolerated.
	// Among candidates with the same total those without one come first.
	Avoided *clusterv1.Taint
	// Selected tells that the decision has the cluster.
	Selected bool
	// Reason says why it is not selected; nil if it is.
	Reason Reason

	// place is the index of the cluster among the available ones, which are in order of their names.
	place int32
	// tie is the lot that the cluster has drawn.
	tie uint64
}

// New returns the available cluster at an index as a candidate.
func New(available *hub.Availability, i, predicate int) Candidate {
	return Candidate{Cluster: available.Clusters[i], ClusterSet: available.ClusterSet(i), Predicate: predicate, place: int32(i)}
}

// At returns the index of the cluster among the available ones.
func (c *Candidate) At() int32 { return c.place }

// ClustersIn lists the clusters of candidates, in their order.
func ClustersIn(candidates []*Candidate) iter.Seq[*clusterv1.ManagedCluster] {
	return func(yield func(*clusterv1.ManagedCluster) bool) {
		for _, c := range candidates {
			if !yield(c.Cluster) {
				return
			}
		}
	}
}

// Filtered is what one filter did.
type Filtered struct {
	// Filter is its name: Predicate or TaintToleration.
	Filter string
	// Removed are the clusters that it removed, sorted by name.
	Removed []Removal
}

// Removal is a cluster that a filter removed.
type Removal struct {
	Cluster string
	Reason  Reason
}
