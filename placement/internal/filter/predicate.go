// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
	"github.com/celset/celset/placement/internal/predicate"
	"github.com/celset/celset/placement/internal/verdict"
)

// Predicates is the filter named Predicate, for one Placement.
type Predicates struct {
	// Verdicts holds the verdict on each available cluster. It is empty if the Placement has no predicates.
	Verdicts []*verdict.Verdict
}

// Describe returns a sentence that says which clusters the filter removes.
func (Predicates) Describe() string {
	return finding.Predicate + " removes clusters that match none of the predicates."
}

// unfiltered is the verdict on each cluster if the Placement has no predicates.
var unfiltered = &verdict.Verdict{Match: predicate.Match{Predicate: -1}}

// Filter returns a candidate for each available cluster that passes, sorted by name, and the clusters that it removed.
func (p Predicates) Filter(available *hub.Availability, found *finding.Findings) ([]*candidate.Candidate, candidate.Filtered) {
	filtered := candidate.Filtered{Filter: finding.Predicate}
	passing := len(available.Clusters)
	for _, v := range p.Verdicts {
		if v.Reason != nil {
			passing--
		}
	}
	if removed := len(p.Verdicts) - passing; removed > 0 {
		filtered.Removed = make([]candidate.Removal, 0, removed)
	}
	var preReleases []string
	made, passed := make([]candidate.Candidate, passing), make([]*candidate.Candidate, 0, passing)
	for i, cluster := range available.Clusters {
		v := unfiltered
		if len(p.Verdicts) > 0 {
			v = p.Verdicts[i]
		}
		if v.PreRelease {
			preReleases = append(preReleases, fmt.Sprintf("%s (%.40q)", cluster.Name, cluster.Status.Version.Kubernetes))
		}
		if v.Reason != nil {
			filtered.Removed = append(filtered.Removed, candidate.Removal{Cluster: cluster.Name, Reason: v.Reason})
			continue
		}
		c := &made[len(passed)]
		*c = candidate.New(available, i, v.Predicate)
		passed = append(passed, c)
	}
	found.Warn(wellknown.ReasonVersionPreReleased, finding.Predicate, "the versions of clusters %s are pre-releases, which are less than the release in the expression; "+
		`compare with semver("1.31.0-0"), which is less than all pre-releases of 1.31.0`, preReleases)
	return passed, filtered
}

// Failures returns those removed clusters on which an evaluation failed.
func Failures(removed []candidate.Removal) (failed []candidate.Removal) {
	for _, removal := range removed {
		if _, ok := removal.Reason.(*candidate.Failed); ok {
			failed = append(failed, removal)
		}
	}
	return failed
}
