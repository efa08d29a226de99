// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
	"strconv"
	"time"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
)

// Inputs are the inputs of dividing the selected clusters of one Placement into PlacementDecisions.
type Inputs struct {
	Placement *clusterv1beta1.Placement
	// Former is the former decision on the Placement.
	Former *hub.Former
	Groups []GroupSelector
	// ScoreRateLimit is the minimum time between two updates of scores in PlacementDecisions. It does not apply if the selection
	// changes.
	ScoreRateLimit time.Duration
	Now            time.Time
}

// byScore reports whether PlacementDecisions list clusters by score, not by name.
func (d *Inputs) byScore() bool {
	return d.Placement.Spec.SortBy == clusterv1beta1.PlacementSortByScore
}

// Decide divides the selected candidates, which must be sorted by name, into a decision. If scores may not be updated yet, next
// receives the time at which they may be.
func (d *Inputs) Decide(ctx context.Context, selected []*candidate.Candidate, next *finding.Wakeup) *Decision {
	result := &Decision{Clusters: len(selected)}
	members := d.members(selected, next)
	for _, m := range members {
		before, chosen := d.Former.Decisions[m.decision.ClusterName]
		if !chosen || before.Score != m.decision.Score {
			result.ScoresUpdated = true
			break
		}
	}
	if d.byScore() {
		orderByScore(members)
	}
	pieces := divide(ctx, members, d.Groups, d.Placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup, d.Now)
	for i, parts := range intoSlices(pieces, d.Former.Slices, d.byScore()) {
		group := Group{Name: pieces[i].name}
		for _, p := range parts {
			group.Slices = append(group.Slices, sliceOf(d.Placement.Name, pieces[i].members, p))
		}
		result.Groups = append(result.Groups, group)
	}
	return result
}

// sliceOf returns the content of a PlacementDecision that lists the members of p.
func sliceOf(placement string, members []member, p *filling) Slice {
	result := Slice{
		Name:      hub.SliceName(placement, p.number),
		Decisions: make([]clusterv1beta1.ClusterDecision, len(p.members)),
	}
	for i, at := range p.members {
		result.Decisions[i] = members[at].decision
	}
	return result
}

// members returns the candidates with their entries for PlacementDecisions. If scores may not be updated yet, the entries keep
// their former scores.
func (d *Inputs) members(selected []*candidate.Candidate, next *finding.Wakeup) []member {
	result, limited := make([]member, len(selected)), d.limited(selected, next)
	reasons, because, reason := map[why]string{}, why{}, ""
	for i, c := range selected {
		score := c.Total
		if limited {
			score = d.Former.Decisions[c.Cluster.Name].Score
		}
		// Most clusters have the same reason as the cluster before them, so the text is reused.
		if own := (why{c.ClusterSet, c.Predicate}); i == 0 || own != because {
			if _, known := reasons[own]; !known {
				reasons[own] = own.String()
			}
			because, reason = own, reasons[own]
		}
		result[i] = member{c, clusterv1beta1.ClusterDecision{ClusterName: c.Cluster.Name, Reason: reason, Score: score}}
	}
	return result
}

// limited reports whether the former scores must be kept: the same clusters are selected, and their scores were updated less
// than spec.scoreRateLimit ago. If they must be kept, next receives the time at which they may be updated.
func (d *Inputs) limited(selected []*candidate.Candidate, next *finding.Wakeup) bool {
	last := d.Placement.Status.LastScoreUpdateTime
	if last == nil || last.After(d.Now) || len(selected) != len(d.Former.Decisions) {
		return false
	}
	end := last.Add(d.ScoreRateLimit)
	if !d.Now.Before(end) {
		return false
	}
	differ := false
	for _, c := range selected {
		before, chosen := d.Former.Decisions[c.Cluster.Name]
		if !chosen {
			return false
		}
		differ = differ || before.Score != c.Total
	}
	if differ {
		next.At(end)
	}
	return differ
}

// why is the reason for a selection. String returns the text that is written in PlacementDecisions. It contains no scores,
// because scores change more often than reasons should.
type why struct {
	set       string
	predicate int
}

// String names the cluster's set and the predicate that matches the cluster.
func (w why) String() string {
	if w.predicate < 0 {
		return "in ManagedClusterSet " + w.set
	}
	return "in ManagedClusterSet " + w.set + ", matches spec.predicates[" + strconv.Itoa(w.predicate) + "]"
}

// DefaultScoreRateLimit is the API server's default for spec.scoreRateLimit.
const DefaultScoreRateLimit = time.Minute
