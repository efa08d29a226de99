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

// Result is the outcome of deciding one Placement, with the reasons.
type Result struct {
	// Decision is the wanted content of the PlacementDecisions. It is nil if an error or a mistake in the Placement prevents a
	// decision. The former decision then stays in effect, and no PlacementDecision may be written or deleted. A Decision without
	// clusters makes the PlacementDecisions empty.
	Decision *decision.Decision
	Previous
	Messages
	// OutOfRange maps the name of a prioritizer to the number of candidates whose values are out of its range.
	OutOfRange map[string]int
	// Requeue is the time at which the outcome may change although no object changes: a toleration ends, a score expires or may be
	// recorded, or the next tick comes after an expression has read now(). It is zero if there is no such time.
	Requeue time.Time
	Dependencies
	Steps
	Evaluation
	// TotalCost is the cost of all verdicts in CEL cost units, including the cost of reused verdicts at the time of their
	// evaluation. A decision without reused verdicts would cost about as much.
	TotalCost uint64
	// Overrun is set if the evaluations exceeded a time limit, so that the former decision stays in effect. The next attempt
	// reuses the verdicts that were found.
	Overrun *verdict.Overrun

	now time.Time
	// last holds the inputs of the result for [Scheduler.Unchanged]. It is nil if they can't be compared later.
	last *memory.Last
}

// Previous describes the former decision on a Placement.
type Previous struct {
	// FormerClusters is the number of clusters that the former decision selects.
	FormerClusters int
	// First is set if the Placement has no PlacementDecisions, so there is no former decision.
	First bool
}

// Messages holds the messages of a Result for users.
type Messages struct {
	// Conditions holds PlacementMisconfigured, PlacementEvaluationFailed and PlacementSatisfied. If Schedule returns an error,
	// PlacementEvaluationFailed is missing, and the caller must leave this condition unchanged.
	Conditions []metav1.Condition
	// Warnings holds one warning for each event that the caller must record.
	Warnings []finding.Warning
	// Misconfigurations lists the mistakes in the Placement.
	Misconfigurations []*finding.Misconfiguration
}

// Dependencies lists those inputs of an outcome that the caller can't derive from the Placement's spec.
type Dependencies struct {
	// Timed is set if an expression has read now().
	Timed bool
	// Reads names the AddOnPlacementScores that expressions and prioritizers read. A change of such a score may change the
	// outcome.
	Reads cluster.ScoreNames
	// NamesSets is set if a condition names ManagedClusterSets that the Placement does not select from. A change of any binding in
	// the namespace may then change the condition.
	NamesSets bool
}

// Steps holds the intermediate results that led to a Decision, in the order of the steps.
type Steps struct {
	// Available holds the clusters that the Placement may select.
	Available *hub.Availability
	// Filters holds the result of each filter, in the order of the filters.
	Filters []candidate.Filtered
	// Prioritizers lists the prioritizers whose weight is not zero.
	Prioritizers []prioritizer.Prioritizer
	// Candidates lists the clusters that passed the filters, best first.
	Candidates []*candidate.Candidate
}

// Evaluation counts the verdicts of the predicates on clusters. If there are no predicates, all counts are zero.
type Evaluation struct {
	// Evaluated is the number of clusters on which the predicates were evaluated.
	Evaluated int
	// Remembered is the number of clusters whose verdict was reused.
	Remembered int
	// Cost is the cost of the evaluations in CEL cost units.
	Cost uint64
}

// KeepsFormer reports whether the former decision stays in effect: there is no new decision, and there is a former one.
func (r *Result) KeepsFormer() bool { return r.Decision == nil && !r.First }

// Time returns the time that was passed to Schedule.
func (r *Result) Time() time.Time { return r.now }

// ApplyTo returns the wanted status of a Placement, given its current status. If the former decision stays in effect, the
// groups in the status are kept. The number of clusters is updated even then, because the status may be older than the
// PlacementDecisions.
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
		result.NumberOfSelectedClusters = int32(r.FormerClusters)
	}
	return result
}

// scoreSummaryLength is the maximum length in bytes of the text of ScoreSummary, which becomes the note of an event.
const scoreSummaryLength = 1000

// ScoreSummary returns the total scores of all candidates, sorted by name: "cluster1:100 cluster2:0 ". It is truncated after
// 1000 bytes.
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

// formerClause returns the end of a message for a result without a decision: the former decision stays in effect, or no cluster
// is selected.
func (r *Result) formerClause() string {
	if r.FormerClusters == 0 {
		return "no cluster is selected"
	}
	return "the previous decision stays in effect"
}
