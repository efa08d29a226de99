// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/decision"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
	"github.com/celset/celset/placement/internal/memory"
	"github.com/celset/celset/placement/internal/prioritizer"
	"github.com/celset/celset/placement/internal/verdict"
)

// Result is the outcome for one Placement, with its reasons.
type Result struct {
	// Decision is what the PlacementDecisions are to say. It is nil if an error or a
	// mistake in the Placement keeps it from being made: then the former decision
	// stands, and no PlacementDecision may be written or deleted. What is to be empty
	// is a Decision with no clusters.
	Decision *decision.Decision
	// Standing is the number of clusters in the former decision.
	Standing int
	// First reports that the Placement has no PlacementDecisions yet, so that no former decision can stand.
	First bool
	// Conditions are PlacementMisconfigured, PlacementEvaluationFailed and
	// PlacementSatisfied; with an error the second one is missing, and stays as it is.
	Conditions []metav1.Condition
	// Warnings are worth an event each.
	Warnings []finding.Warning
	// OutOfRange is of how many candidates the values that a prioritizer reads are not in
	// their range, by its name.
	OutOfRange map[string]int
	// Misconfigurations are what is wrong with the Placement.
	Misconfigurations []*finding.Misconfiguration
	// Requeue is when the outcome may change though no object does: a toleration ends,
	// a score expires or may be recorded, or the next tick is due because an expression
	// has read now(). Zero is never.
	Requeue time.Time
	// Timed reports that an expression has read now().
	Timed bool
	// Reads are the AddOnPlacementScores that decide, in expressions or as
	// prioritizers: when one of them changes, for any cluster, so may the outcome.
	Reads cluster.ScoreNames
	// NamesSets reports that a condition names ManagedClusterSets that the Placement does not select from, so that the
	// outcome changes with any binding in the namespace.
	NamesSets bool

	// Available is what there was to choose from.
	Available *hub.Availability
	// Filters are what the filters did, in the order in which they ran.
	Filters []candidate.Filtered
	// Prioritizers are those that took part.
	Prioritizers []prioritizer.Prioritizer
	// Candidates are the clusters that passed the filters, the most wanted first.
	Candidates []*candidate.Candidate

	// Evaluated is how many clusters the predicates were asked about, Remembered of how
	// many the answer was known; both are zero without predicates. Cost is what the
	// evaluations cost, in CEL cost units.
	Evaluated  int
	Remembered int
	Cost       uint64
	// TotalCost is what all answers cost, those included that are remembered: about what
	// it would cost to decide again if everything changed.
	TotalCost uint64
	// Overrun says that the evaluations took longer than they may, so that the former
	// decision stands; nil if they did not. What was evaluated is remembered: another
	// attempt goes on from there.
	Overrun *verdict.Overrun

	now time.Time
	// last is what the result was made from, nil if that is not remembered.
	last *memory.Last
}

// Stands reports whether the former decision stands: no decision was made, and there is a former one.
func (r *Result) Stands() bool { return r.Decision == nil && !r.First }

// Time is when the decision was made, or is to be thought of as made.
func (r *Result) Time() time.Time { return r.now }

// ApplyTo returns the status that a Placement is to have, with the status that it
// has now. What a standing decision says in it of groups stays. The number of its clusters
// may have been written to the PlacementDecisions and not to the Placement yet.
func (r *Result) ApplyTo(status clusterv1beta1.PlacementStatus) clusterv1beta1.PlacementStatus {
	result := *status.DeepCopy()
	result.Conditions = slices.Clone(result.Conditions)
	for _, condition := range r.Conditions {
		meta.SetStatusCondition(&result.Conditions, condition)
	}
	if r.Decision != nil {
		result.NumberOfSelectedClusters = int32(r.Decision.Clusters)
		result.DecisionGroups = r.Decision.Status()
		if r.Decision.ScoresUpdated {
			result.LastScoreUpdateTime = &metav1.Time{Time: r.now}
		}
	} else {
		result.NumberOfSelectedClusters = int32(r.Standing)
	}
	return result
}

// scoreSummaryLength is where the note of an event ends.
const scoreSummaryLength = 1000

// ScoreSummary lists the totals of all candidates, sorted by name, as events do:
// "cluster1:100 cluster2:0 ", cut after 1000 bytes.
func (r *Result) ScoreSummary() string {
	var text strings.Builder
	candidates := slices.Clone(r.Candidates)
	candidate.SortByName(candidates)
	for _, c := range candidates {
		fmt.Fprintf(&text, "%s:%d ", c.Cluster.Name, c.Total)
		if text.Len() > scoreSummaryLength {
			return text.String()[:scoreSummaryLength] + "......"
		}
	}
	return text.String()
}

// standing is what conditions say where no decision is made.
func (r *Result) standing() string {
	if r.Standing == 0 {
		return "no cluster is selected"
	}
	return "the former decision stands"
}
