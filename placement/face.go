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

// Types for the inputs of a decision.
type (
	// Snapshot is the hub at one moment.
	Snapshot = hub.Snapshot
	// ScoreNamer lists the AddOnPlacementScores of a cluster, so that a condition can suggest existing names.
	ScoreNamer = hub.ScoreNamer
	// Decisions counts the PlacementDecisions of the hub.
	Decisions = hub.Decisions
	// Availability holds the clusters that a Placement may choose from.
	Availability = hub.Availability
)

// NewDecisions returns Decisions that hold objects.
func NewDecisions(objects ...*clusterv1beta1.PlacementDecision) *Decisions {
	return hub.NewDecisions(objects...)
}

// Types for the findings about a Placement in a Result.
type (
	// Misconfiguration is an invalid part of a Placement.
	Misconfiguration = finding.Misconfiguration
	// Warning is an event about a problem that does not prevent a decision.
	Warning = finding.Warning
	// Overrun reports that the evaluations exceeded a time limit.
	Overrun = verdict.Overrun
)

// Names of the configurable parts of a Placement, as used in conditions, metrics and events.
const (
	Predicate       = finding.Predicate
	TaintToleration = finding.TaintToleration
	Prioritizers    = finding.Prioritizers
	Spread          = finding.Spread
	DecisionGroups  = finding.DecisionGroups
	Selection       = finding.Selection
)

// Deadline is the cause of a context that ends because of a time limit, not because the program ends. If it ends evaluations,
// [Scheduler.Schedule] reports an [Overrun] and not an error.
type Deadline = deadline.Deadline

// WithDeadline returns a context that ends after the given time. The message of its cause names limit, the limit of the whole
// work. limit is longer than after if the work continues later in another context.
func WithDeadline(ctx context.Context, after, limit time.Duration) (context.Context, context.CancelFunc) {
	return deadline.With(ctx, after, limit)
}

// Types for the outcome of one cluster. A cluster that is not selected has a Reason.
type (
	// Candidate is a cluster that passed the filters.
	Candidate = candidate.Candidate
	// Filtered describes the effect of one filter.
	Filtered = candidate.Filtered
	// Removal is a cluster that a filter removed.
	Removal = candidate.Removal
	// Reason says why a cluster is not selected. It is one of the following types.
	Reason = candidate.Reason
	// Unmatched means that no predicate matches the cluster.
	Unmatched = candidate.Unmatched
	// Failed means that the evaluation of the cluster failed.
	Failed = candidate.Failed
	// Late means that the cluster was not evaluated in time.
	Late = candidate.Late
	// Untolerated means that the cluster has a taint that no toleration matches.
	Untolerated = candidate.Untolerated
	// NoTopology means that the cluster lacks the label or claim that decisions must be spread over.
	NoTopology = candidate.NoTopology
	// Skewed means that the topology of the cluster has enough decisions.
	Skewed = candidate.Skewed
	// Surplus means that enough other clusters are selected.
	Surplus = candidate.Surplus
)

// Values of [wellknown.AnnotationTieBreak].
const (
	TieBreakName   = candidate.TieBreakName
	TieBreakRandom = candidate.TieBreakRandom
)

// Prioritizer is a prioritizer with its weight.
type Prioritizer = prioritizer.Prioritizer

// Names of the built-in prioritizers.
const (
	Steady                    = prioritizer.Steady
	Balance                   = prioritizer.Balance
	ResourceAllocatableCPU    = prioritizer.ResourceAllocatableCPU
	ResourceAllocatableMemory = prioritizer.ResourceAllocatableMemory
)

// Every score is between MinScore and MaxScore.
const (
	MinScore = prioritizer.MinScore
	MaxScore = prioritizer.MaxScore
)

// Types for the output. A Decision is written to the hub in steps.
type (
	// Decision is the wanted content of a Placement's PlacementDecisions.
	Decision = decision.Decision
	// Group is a decision group.
	Group = decision.Group
	// Slice is the content of one PlacementDecision.
	Slice = decision.Slice
	// Step is one change to the PlacementDecisions of a Placement.
	Step = decision.Step
)

// MaxSliceLength is the maximum number of clusters in one PlacementDecision.
const MaxSliceLength = decision.MaxSliceLength

// Updates returns the steps that change the former PlacementDecisions of a Placement into the wanted ones. After each step, a
// cluster that stays selected is in some PlacementDecision. The caller must stop at the first step that fails or has an uncertain
// result. Each write must require the resource version in former, or the version that an earlier step has made.
func Updates(former, wanted []*clusterv1beta1.PlacementDecision) []Step {
	return decision.Updates(former, wanted)
}

// Limits for a Placement. A Placement that exceeds one is misconfigured.
const (
	// MaxExpressions is the maximum number of CEL expressions in a Placement. MaxExpressionBytes is their maximum total size.
	MaxExpressions     = plan.MaxExpressions
	MaxExpressionBytes = plan.MaxExpressionBytes
	// MaxParts limits the predicates of a Placement, the prioritizers, and the decision groups, each separately.
	MaxParts = plan.MaxParts
	// MaxValues limits the total number of labels, requirements with their values, tolerations and sets.
	MaxValues = plan.MaxValues
)
