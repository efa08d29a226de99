// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"time"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/deadline"
	"github.com/celset/celset/placement/internal/decision"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
	"github.com/celset/celset/placement/internal/plan"
	"github.com/celset/celset/placement/internal/prioritizer"
	"github.com/celset/celset/placement/internal/verdict"
)

// A decision is made from a snapshot of a hub.
type (
	// Snapshot is the hub at one moment.
	Snapshot = hub.Snapshot
	// ScoreNamer lists the AddOnPlacementScores of a cluster, so that a condition can name those that there are.
	ScoreNamer = hub.ScoreNamer
	// Decisions counts the PlacementDecisions of the hub.
	Decisions = hub.Decisions
	// Availability has the clusters that a Placement may choose from.
	Availability = hub.Availability
)

// NewDecisions returns the Decisions of some objects.
func NewDecisions(objects ...*clusterv1beta1.PlacementDecision) *Decisions {
	return hub.NewDecisions(objects...)
}

// A Result says what was found about a Placement.
type (
	// Misconfiguration is a part of a Placement that can't be understood.
	Misconfiguration = finding.Misconfiguration
	// Warning is an event that does not keep a Placement from being decided.
	Warning = finding.Warning
	// Overrun says that the evaluations took longer than they may.
	Overrun = verdict.Overrun
)

// Names of what a Placement configures, as conditions, metrics and events have
// them.
const (
	Predicate       = finding.Predicate
	TaintToleration = finding.TaintToleration
	Prioritizers    = finding.Prioritizers
	Spread          = finding.Spread
	DecisionGroups  = finding.DecisionGroups
	Selection       = finding.Selection
)

// Deadline is the cause of a context that ends because something takes too long, and
// not because the program does. Where it ends evaluations, that is no error of
// [Scheduler.Schedule] but an [Overrun].
type Deadline = deadline.Deadline

// WithDeadline returns a context that ends after a while because of a limit, which is
// longer where this is only a part of what is limited.
func WithDeadline(ctx context.Context, after, limit time.Duration) (context.Context, context.CancelFunc) {
	return deadline.With(ctx, after, limit)
}

// A cluster is a candidate, or there is a reason for which it is not selected.
type (
	// Candidate is a cluster that passed the filters.
	Candidate = candidate.Candidate
	// Filtered is what one filter did.
	Filtered = candidate.Filtered
	// Removal is a cluster that a filter removed.
	Removal = candidate.Removal
	// Reason says why a cluster is not selected. It is one of the following types.
	Reason = candidate.Reason
	// Unmatched is the reason of a cluster that no predicate matches.
	Unmatched = candidate.Unmatched
	// Failed is the reason of a cluster that could not be evaluated.
	Failed = candidate.Failed
	// Late is the reason of a cluster that was not evaluated in time.
	Late = candidate.Late
	// Untolerated is the reason of a cluster with a taint that no toleration matches.
	Untolerated = candidate.Untolerated
	// NoTopology is the reason of a cluster without the label or claim that decisions are spread over.
	NoTopology = candidate.NoTopology
	// Skewed is the reason of a cluster whose topology has enough decisions.
	Skewed = candidate.Skewed
	// Surplus is the reason of a cluster that is not among the wanted number.
	Surplus = candidate.Surplus
)

// Values of [wellknown.AnnotationTieBreak].
const (
	TieBreakName   = candidate.TieBreakName
	TieBreakRandom = candidate.TieBreakRandom
)

// Prioritizer is a prioritizer that took part, with its weight.
type Prioritizer = prioritizer.Prioritizer

// Names of the prioritizers that are built in.
const (
	Steady                    = prioritizer.Steady
	Balance                   = prioritizer.Balance
	ResourceAllocatableCPU    = prioritizer.ResourceAllocatableCPU
	ResourceAllocatableMemory = prioritizer.ResourceAllocatableMemory
)

// Scores of every prioritizer are in this range.
const (
	MinScore = prioritizer.MinScore
	MaxScore = prioritizer.MaxScore
)

// A Decision is written to the hub in steps.
type (
	// Decision is what the PlacementDecisions of a Placement are to say.
	Decision = decision.Decision
	// Group is a decision group.
	Group = decision.Group
	// Slice is what one PlacementDecision says.
	Slice = decision.Slice
	// Step is one change to the PlacementDecisions of a Placement.
	Step = decision.Step
)

// MaxSliceLength is how many clusters one PlacementDecision may have.
const MaxSliceLength = decision.MaxSliceLength

// Updates returns the steps from the former to the wanted PlacementDecisions of a
// Placement. A cluster that stays selected is in some PlacementDecision after each step,
// provided that the steps end at the first one that fails or is not known to have
// succeeded, and that each object is written in the version that former has.
func Updates(former, wanted []*clusterv1beta1.PlacementDecision) []Step {
	return decision.Updates(former, wanted)
}

// A Placement that has more than the following is misconfigured.
const (
	// MaxExpressions is how many CEL expressions a Placement may have, and MaxExpressionBytes how many
	// bytes they may have together.
	MaxExpressions     = plan.MaxExpressions
	MaxExpressionBytes = plan.MaxExpressionBytes
	// MaxParts is how many predicates a Placement may have, and how many prioritizers and decision groups.
	MaxParts = plan.MaxParts
	// MaxValues is how many labels, requirements with their values, tolerations and sets it may have together.
	MaxValues = plan.MaxValues
)
