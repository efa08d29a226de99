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
	// mistake in the Placement keeps it from being made. Then the former decision
	// stands, and no PlacementDecision may be written or deleted. A Decision without
	// clusters empties the PlacementDecisions.
	Decision *decision.Decision
	Previous
	Messages
	// OutOfRange maps the name of a prioritizer to the number of candidates whose values
	// are out of range.
	OutOfRange map[string]int
	// Requeue is the time at which the outcome may change though no object does: a
	// toleration ends, a score expires or may be recorded, or the next tick is due because
	// an expression has read now(). It is zero if there is no such time.
	Requeue time.Time
	Dependencies
	Steps
	Evaluation
	// TotalCost is the cost of all verdicts, remembered ones included, in CEL cost units:
	// about what it would cost to decide again if everything changed.
	TotalCost uint64
	// Overrun says that the evaluations took longer than they may, so that the former
	// decision stands. It is nil if they did not. Verdicts are remembered, and another
	// attempt goes on from there.
	Overrun *verdict.Overrun

	now time.Time
	// last is what the result was made from, nil if that is not remembered.
	last *memory.Last
}

// Previous says what a Placement had selected before.
type Previous struct {
	// Standing is the number of clusters in the former decision.
	Standing int
	// First reports that the Placement has no PlacementDecisions yet, so that no former decision can stand.
	First bool
}

// Messages are what a Result says to users.
type Messages struct {
	// Conditions are PlacementMisconfigured, PlacementEvaluationFailed and
	// PlacementSatisfied. With an error the second one is missing, and stays as it is.
	Conditions []metav1.Condition
	// Warnings are worth an event each.
	Warnings []finding.Warning
	// Misconfigurations are what is wrong with the Placement.
	Misconfigurations []*finding.Misconfiguration
}

// Dependencies are what an outcome depends on besides the clusters, the sets that the Placement selects from, and the
// PlacementDecisions.
type Dependencies struct {
	// Timed reports that an expression has read now().
	Timed bool
	// Reads are the AddOnPlacementScores that expressions and prioritizers read. If one of
	// them changes, for any cluster, the outcome may change.
	Reads cluster.ScoreNames
	// NamesSets reports that a condition names ManagedClusterSets that the Placement does not select from, so that the
	// outcome changes with any binding in the namespace.
	NamesSets bool
}

// Steps are the steps that led to a Decision, in their order.
type Steps struct {
	// Available has the clusters that there were to choose from.
	Available *hub.Availability
	// Filters say what the filters did, in the order in which they ran.
	Filters []candidate.Filtered
	// Prioritizers are those that took part.
	Prioritizers []prioritizer.Prioritizer
	// Candidates are the clusters that passed the filters, the most wanted first.
	Candidates []*candidate.Candidate
}

// Evaluation counts the verdicts of the predicates. All counts are zero if there are no predicates.
type Evaluation struct {
	// Evaluated is the number of clusters about which the predicates were asked.
	Evaluated int
	// Remembered is the number of clusters on which the verdict was known.
	Remembered int
	// Cost is the cost of the evaluations, in CEL cost units.
	Cost uint64
}

// Stands reports whether the former decision stands: no decision was made, and there is a former one.
func (r *Result) Stands() bool { return r.Decision == nil && !r.First }

// Time returns the time that Schedule was given.
func (r *Result) Time() time.Time { return r.now }

// ApplyTo returns the status that a Placement is to have, from the status that it has
// now. If the former decision stands, the groups in the status stay. The number of clusters
// is written anyway: it may be in the PlacementDecisions and not in the Placement yet.
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

// standing returns the clause with which conditions say that no decision is made.
func (r *Result) standing() string {
	if r.Standing == 0 {
		return "no cluster is selected"
	}
	return "the former decision stands"
}
