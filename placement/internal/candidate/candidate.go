// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"iter"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement/internal/hub"
)

// Candidate is a cluster that passed the filters. Its fields are in the order of the steps that set them: filters,
// prioritizers, spreading.
type Candidate struct {
	// Cluster is the object of the cluster.
	Cluster *clusterv1.ManagedCluster
	// ClusterSet is the first ManagedClusterSet of the Placement that contains the cluster.
	ClusterSet string
	// Predicate is the index of the first predicate that matches the cluster, or -1 if the Placement has no predicates.
	Predicate int
	// Avoided is the first untolerated taint with the effect PreferNoSelect, or nil. Among candidates with equal totals,
	// candidates without such a taint come first.
	Avoided *clusterv1.Taint

	// Scores holds the unweighted score by each prioritizer, in the order of the result's prioritizers.
	Scores []int64
	// Total is the sum of the weighted scores.
	Total int64

	// Selected is set if the decision contains the cluster.
	Selected bool
	// Reason says why the cluster is not selected. It is nil if the cluster is selected.
	Reason Reason

	// position is the index of the cluster among the available clusters, which are sorted by name.
	position int32
	// tie is a random number that orders candidates with equal totals. It is 0 unless the Placement requests random order.
	tie uint64
}

// New returns a candidate for the available cluster at index i. predicate is the index of the predicate that matches the
// cluster.
func New(available *hub.Availability, i, predicate int) Candidate {
	return Candidate{Cluster: available.Clusters[i], ClusterSet: available.ClusterSet(i), Predicate: predicate, position: int32(i)}
}

// At returns the index of the cluster in the list of available clusters.
func (c *Candidate) At() int32 { return c.position }

// ClustersIn iterates over the clusters of the candidates in order.
func ClustersIn(candidates []*Candidate) iter.Seq[*clusterv1.ManagedCluster] {
	return func(yield func(*clusterv1.ManagedCluster) bool) {
		for _, c := range candidates {
			if !yield(c.Cluster) {
				return
			}
		}
	}
}

// Filtered describes which clusters one filter removed.
type Filtered struct {
	// Filter is the name of the filter: Predicate or TaintToleration.
	Filter string
	// Removed lists the clusters that the filter removed, sorted by name.
	Removed []Removal
}

// Removal is a cluster that a filter removed.
type Removal struct {
	Cluster string
	Reason  Reason
}
