// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"iter"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement/internal/hub"
)

// Candidate is a cluster that passed the filters. Filters, prioritizers and spreading fill its
// fields in this order.
type Candidate struct {
	// Cluster is the object of the cluster.
	Cluster *clusterv1.ManagedCluster
	// ClusterSet is the first eligible ManagedClusterSet that the cluster is in.
	ClusterSet string
	// Predicate is the index of the first predicate that matches the cluster, -1 if the
	// Placement has no predicates.
	Predicate int
	// Avoided is the first taint with the effect PreferNoSelect that is not tolerated, nil if
	// there is none. Of candidates with the same total, those without such a taint come first.
	Avoided *clusterv1.Taint

	// Scores are the scores of the prioritizers of the result, in their order, before weighting.
	Scores []int64
	// Total is the sum of the weighted scores.
	Total int64

	// Selected tells that the decision has the cluster.
	Selected bool
	// Reason says why the cluster is not selected; nil if it is.
	Reason Reason

	// place is the index of the cluster among the available clusters, which are in order of their names.
	place int32
	// tie is the random number by which candidates with the same total are ranked, 0 if that is not asked for.
	tie uint64
}

// New returns the available cluster at an index as a candidate.
func New(available *hub.Availability, i, predicate int) Candidate {
	return Candidate{Cluster: available.Clusters[i], ClusterSet: available.ClusterSet(i), Predicate: predicate, place: int32(i)}
}

// At returns the index of the cluster among the available clusters.
func (c *Candidate) At() int32 { return c.place }

// ClustersIn iterates over the clusters of candidates, in their order.
func ClustersIn(candidates []*Candidate) iter.Seq[*clusterv1.ManagedCluster] {
	return func(yield func(*clusterv1.ManagedCluster) bool) {
		for _, c := range candidates {
			if !yield(c.Cluster) {
				return
			}
		}
	}
}

// Filtered says what one filter did.
type Filtered struct {
	// Filter is the name of the filter: Predicate or TaintToleration.
	Filter string
	// Removed are the clusters that the filter removed, sorted by name.
	Removed []Removal
}

// Removal is a cluster that a filter removed.
type Removal struct {
	Cluster string
	Reason  Reason
}
