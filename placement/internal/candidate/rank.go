// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
)

// Values of the annotation [wellknown.AnnotationTieBreak].
const (
	TieBreakName   = "name"
	TieBreakRandom = "random"
)

// Ranked returns the candidates of a Placement, best first. candidates must be sorted by name, because the name decides between
// candidates that are otherwise equal.
func Ranked(placement *clusterv1beta1.Placement, candidates []*Candidate) []*Candidate {
	if placement.Annotations[wellknown.AnnotationTieBreak] == TieBreakRandom {
		for _, c := range candidates {
			c.tie = lot(placement.UID, c.Cluster.Name)
		}
	} else if result := byCounting(candidates); result != nil {
		return result
	}
	result := slices.Clone(candidates)
	slices.SortFunc(result, func(a, b *Candidate) int {
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
		return cmp.Compare(a.position, b.position)
	})
	return result
}

// byCounting ranks candidates without random numbers by a counting sort. This is fast because totals are small integers and
// many are equal. It returns nil if the range of the totals is too large for a counting sort.
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
	// Among candidates with equal totals, candidates with an avoided taint come last.
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

// lot returns a random number that depends only on the Placement and the cluster.
func lot(placement types.UID, cluster string) uint64 {
	sum := sha256.Sum256([]byte(string(placement) + "/" + cluster))
	return binary.BigEndian.Uint64(sum[:8])
}

// SortByName sorts candidates by the names of their clusters. Their positions have this order.
func SortByName(candidates []*Candidate) {
	slices.SortFunc(candidates, func(a, b *Candidate) int { return cmp.Compare(a.position, b.position) })
}

// SelectedOf returns the candidates that are selected, in their order.
func SelectedOf(candidates []*Candidate) []*Candidate {
	n := 0
	for _, c := range candidates {
		if c.Selected {
			n++
		}
	}
	result := make([]*Candidate, 0, n)
	for _, c := range candidates {
		if c.Selected {
			result = append(result, c)
		}
	}
	return result
}
