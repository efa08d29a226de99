// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
)

// Result is the outcome for one Placement, with its reasons.
type Result struct {
	// Decision is what the PlacementDecisions are to say. It is nil if an error or a
	// mistake in the Placement keeps it from being made: then the former decision
	// stands, and no PlacementDecision may be written or deleted. What is to be empty
	// is a Decision with no clusters.
	Decision *Decision
	// Standing is the number of clusters in the former decision.
	Standing int
	// Conditions are PlacementMisconfigured, PlacementEvaluationFailed and
	// PlacementSatisfied; with an error the second one is missing, and stays as it is.
	Conditions []metav1.Condition
	// Warnings are worth an event each.
	Warnings []Warning
	// OutOfRange is of how many candidates the values that a prioritizer reads are not in
	// their range, by its name.
	OutOfRange map[string]int
	// Misconfigurations are what is wrong with the Placement.
	Misconfigurations []*Misconfiguration
	// Requeue is when the outcome may change though no object does: a toleration ends,
	// a score expires or may be recorded, or the next tick is due because an expression
	// has read now(). Zero is never.
	Requeue time.Time
	// Timed reports that an expression has read now().
	Timed bool
	// Reads are the AddOnPlacementScores that decide, in expressions or as
	// prioritizers: when one of them changes, for any cluster, so may the outcome.
	Reads cluster.ScoreNames

	// Available is what there was to choose from.
	Available *Availability
	// Filters are what the filters did, in the order in which they ran.
	Filters []Filtered
	// Prioritizers are those that took part.
	Prioritizers []Prioritizer
	// Candidates are the clusters that passed the filters, the most wanted first.
	Candidates []*Candidate

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
	Overrun *Overrun

	now time.Time
	// last is what the result was made from, nil if that is not remembered.
	last *lastResult
}

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
		result.DecisionGroups = r.Decision.status()
		if r.Decision.ScoresUpdated {
			result.LastScoreUpdateTime = &metav1.Time{Time: r.now}
		}
	} else {
		result.NumberOfSelectedClusters = int32(r.Standing)
	}
	return result
}

// Misconfigured is for when something about the Placement is wrong that only the hub tells, and the decision was written
// all the same: one of the conditions says what.
func (r *Result) Misconfigured(placement *clusterv1beta1.Placement, wrong *Misconfiguration) {
	r.replace(placement, wrong, clusterv1beta1.PlacementConditionMisconfigured)
}

// Stand is for when the decision can't be written, because something about the Placement is wrong that only the hub
// tells: the former decision stands, and the conditions say why.
func (r *Result) Stand(placement *clusterv1beta1.Placement, wrong *Misconfiguration) {
	r.Decision = nil
	r.replace(placement, wrong, clusterv1beta1.PlacementConditionMisconfigured, clusterv1beta1.PlacementConditionSatisfied).misconfigured()
}

// replace makes the condition that a Placement is misconfigured anew, in place of all of some types.
func (r *Result) replace(placement *clusterv1beta1.Placement, wrong *Misconfiguration, types ...string) *report {
	r.Misconfigurations = append(slices.Clone(r.Misconfigurations), wrong)
	r.Conditions = slices.DeleteFunc(slices.Clone(r.Conditions), func(c metav1.Condition) bool { return slices.Contains(types, c.Type) })
	to := &report{r, placement, r.now}
	to.configured(r.Misconfigurations)
	return to
}
