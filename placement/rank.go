// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
)

// Values of [wellknown.AnnotationTieBreak].
const (
	TieBreakName   = "name"
	TieBreakRandom = "random"
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

	// tie is what it drew, index its place among the candidates in order of their names, place that among the available
	// clusters.
	tie   uint64
	index int
	place int32
}

// rank returns the candidates from the most to the least wanted. They are in order of
// their names, which stays where nothing else tells them apart.
func (r *run) rank(candidates []*Candidate) []*Candidate {
	if r.placement.Annotations[wellknown.AnnotationTieBreak] == TieBreakRandom {
		for _, c := range candidates {
			c.tie = lot(r.placement.UID, c.Cluster.Name)
		}
	} else if ranked := byCounting(candidates); ranked != nil {
		return ranked
	}
	ranked := slices.Clone(candidates)
	slices.SortFunc(ranked, func(a, b *Candidate) int {
		if a.Total != b.Total {
			return cmp.Compare(b.Total, a.Total)
		}
		if (a.Avoided == nil) != (b.Avoided == nil) {
			if a.Avoided == nil {
				return -1
			}
			return 1
		}
		if a.tie != b.tie {
			return cmp.Compare(a.tie, b.tie)
		}
		return cmp.Compare(a.index, b.index)
	})
	return ranked
}

// byCounting ranks candidates that have drawn nothing by counting how many there are of each
// total: totals are small whole numbers, and many have the same. nil if they are too far apart.
func byCounting(candidates []*Candidate) []*Candidate {
	if len(candidates) == 0 {
		return nil
	}
	least, most := candidates[0].Total, candidates[0].Total
	for _, c := range candidates {
		least, most = min(least, c.Total), max(most, c.Total)
	}
	if most-least > int64(len(candidates)) {
		return nil
	}
	// Those without a taint that is to be avoided are before those with one.
	kind := func(c *Candidate) int {
		if c.Avoided != nil {
			return 2*int(most-c.Total) + 1
		}
		return 2 * int(most-c.Total)
	}
	ends := make([]int, 2*(most-least)+2)
	for _, c := range candidates {
		ends[kind(c)]++
	}
	end := 0
	for i, n := range ends {
		ends[i], end = end, end+n
	}
	ranked := make([]*Candidate, len(candidates))
	for _, c := range candidates {
		at := &ends[kind(c)]
		ranked[*at] = c
		*at++
	}
	return ranked
}

// lot is what a cluster draws for a Placement.
func lot(placement types.UID, cluster string) uint64 {
	sum := sha256.Sum256([]byte(string(placement) + "/" + cluster))
	return binary.BigEndian.Uint64(sum[:8])
}

func validateTieBreak(placement *clusterv1beta1.Placement, wrong *misconfigurations) {
	switch value := placement.Annotations[wellknown.AnnotationTieBreak]; value {
	case "", TieBreakName, TieBreakRandom:
	default:
		wrong.add(Selection, field.NewPath("metadata", "annotations").Key(wellknown.AnnotationTieBreak),
			fmt.Sprintf("unknown order %q; use %s or %s", value, TieBreakName, TieBreakRandom))
	}
}

func sortByName(candidates []*Candidate) {
	slices.SortFunc(candidates, func(a, b *Candidate) int { return cmp.Compare(a.index, b.index) })
}
