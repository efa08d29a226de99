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
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
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
	// First reports that the Placement has no PlacementDecisions yet, so that no former decision can stand.
	First bool
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
	// NamesSets reports that a condition names ManagedClusterSets that the Placement does not select from, so that the
	// outcome changes with any binding in the namespace.
	NamesSets bool

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
	r.Conditions = slices.Clone(r.Conditions)
	for i := range r.Conditions {
		if c := &r.Conditions[i]; c.Type == wellknown.ConditionEvaluationFailed {
			c.Message = strings.Replace(c.Message, unselected, "", 1)
		}
	}
	r.replace(placement, wrong, clusterv1beta1.PlacementConditionMisconfigured, clusterv1beta1.PlacementConditionSatisfied).misconfigured()
}

// replace makes the condition that a Placement is misconfigured anew, in place of all of some types.
func (r *Result) replace(placement *clusterv1beta1.Placement, wrong *Misconfiguration, types ...string) *report {
	r.Misconfigurations = append(slices.Clone(r.Misconfigurations), wrong)
	r.Conditions = slices.DeleteFunc(slices.Clone(r.Conditions), func(c metav1.Condition) bool { return slices.Contains(types, c.Type) })
	to := &report{result: r, placement: placement, now: r.now}
	to.configured(r.Misconfigurations)
	return to
}

// horizon is the earliest of several times, zero if there is none.
type horizon struct {
	time time.Time
}

// at adds a time; zero adds nothing.
func (h *horizon) at(t time.Time) {
	if !t.IsZero() && (h.time.IsZero() || t.Before(h.time)) {
		h.time = t
	}
}

// after adds the first moment after a time.
func (h *horizon) after(t time.Time) { h.at(t.Add(time.Nanosecond)) }

// scoreSummaryLength is where the note of an event ends.
const scoreSummaryLength = 1000

// ScoreSummary lists the totals of all candidates, sorted by name, as events do:
// "cluster1:100 cluster2:0 ", cut after 1000 bytes.
func (r *Result) ScoreSummary() string {
	var text strings.Builder
	candidates := slices.Clone(r.Candidates)
	sortByName(candidates)
	for _, c := range candidates {
		fmt.Fprintf(&text, "%s:%d ", c.Cluster.Name, c.Total)
		if text.Len() > scoreSummaryLength {
			return text.String()[:scoreSummaryLength] + "......"
		}
	}
	return text.String()
}

// Reason says why a cluster is not selected: it is one of [*Unmatched], [*Failed],
// [*Late], [*Untolerated], [*NoTopology], [*Skewed] and [*Surplus]. String is a sentence
// without its subject, "the cluster".
type Reason interface {
	fmt.Stringer
	reason()
}

// Filtered is what one filter did.
type Filtered struct {
	// Filter is its name: Predicate or TaintToleration.
	Filter string
	// Removed are the clusters that it removed, sorted by name.
	Removed []Removal
}

// Removal is a cluster that a filter removed.
type Removal struct {
	Cluster string
	Reason  Reason
}

// Unmatched is the reason of a cluster that no predicate matches.
type Unmatched struct {
	// Parts lead, one for each predicate, to the first part that does not match.
	Parts []*field.Path
}

// Failed is the reason of a cluster that no predicate matches, and that could not
// be evaluated with one of them.
type Failed struct {
	// Err joins the failures; each is a *cluster.Error.
	Err error
}

// Untolerated is the reason of a cluster with a taint that no toleration matches.
type Untolerated struct {
	Taint clusterv1.Taint
}

// NoTopology is the reason of a cluster without the label or claim that decisions
// must be spread over.
type NoTopology struct {
	// Constraint leads to the spread constraint.
	Constraint *field.Path
	// Key is that of the label or claim.
	Key string
}

// Skewed is the reason of a cluster whose topology has enough decisions.
type Skewed struct {
	// Constraint leads to the spread constraint.
	Constraint *field.Path
	// Key is that of the label or claim, Value its value.
	Key, Value string
	// Count is how many of its clusters are selected, Least how many of the topology
	// with the fewest, MaxSkew the most that these may differ.
	Count, Least, MaxSkew int
}

// Surplus is the reason of a cluster that is not among the wanted number.
type Surplus struct {
	// Wanted is spec.numberOfClusters.
	Wanted int
}

func (*Unmatched) reason()   {}
func (*Failed) reason()      {}
func (*Untolerated) reason() {}
func (*NoTopology) reason()  {}
func (*Skewed) reason()      {}
func (*Surplus) reason()     {}

// String names the parts.
func (u *Unmatched) String() string {
	parts := make([]string, len(u.Parts))
	for i, part := range u.Parts {
		parts[i] = part.String()
	}
	return "does not match " + strings.Join(parts, ", nor ")
}

// String is the errors.
func (f *Failed) String() string { return "can't be evaluated: " + f.Err.Error() }

// String names the taint.
func (u *Untolerated) String() string {
	return fmt.Sprintf("has the taint %s that is not tolerated", taintText(&u.Taint))
}

// taintText is a taint as kubectl writes it, KEY=VALUE:EFFECT.
func taintText(taint *clusterv1.Taint) string {
	if taint.Value == "" {
		return fmt.Sprintf("%s:%s", taint.Key, taint.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect)
}

// String names the key.
func (n *NoTopology) String() string {
	return fmt.Sprintf("has no %q, which %s needs", n.Key, n.Constraint)
}

// String has all the numbers.
func (s *Skewed) String() string {
	return fmt.Sprintf("would exceed the maxSkew %d of %s: %d clusters are selected with %s=%s, and %d with another",
		s.MaxSkew, s.Constraint, s.Count, s.Key, s.Value, s.Least)
}

// String says how many are wanted.
func (s *Surplus) String() string {
	if s.Wanted == 0 {
		return "is not wanted: spec.numberOfClusters is 0"
	}
	return fmt.Sprintf("is not among the first %d", s.Wanted)
}
