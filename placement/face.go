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

// Types for the inputs of a decision. They are defined in internal packages.
type (
	// Snapshot is the state of the hub at one time.
	Snapshot = hub.Snapshot
	// ScoreNamer lists the names of a cluster's AddOnPlacementScores, so that a condition can suggest existing names.
	ScoreNamer = hub.ScoreNamer
	// Decisions holds the PlacementDecisions of the hub, and counts for each cluster how many select it.
	Decisions = hub.Decisions
	// Availability holds the clusters that a Placement may select.
	Availability = hub.Availability
)

// NewDecisions returns Decisions with these objects.
func NewDecisions(objects ...*clusterv1beta1.PlacementDecision) *Decisions {
	return hub.NewDecisions(objects...)
}

// Types for what a Result reports about a Placement.
type (
	// Misconfiguration is an invalid part of a Placement.
	Misconfiguration = finding.Misconfiguration
	// Warning describes a problem that does not prevent a decision. The caller records an event for it.
	Warning = finding.Warning
	// Overrun reports that the evaluations exceeded a time limit.
	Overrun = verdict.Overrun
)

// Names of the parts of a Placement, as used in conditions, metrics and events.
const (
	Predicate       = finding.Predicate
	TaintToleration = finding.TaintToleration
	Prioritizers    = finding.Prioritizers
	Spread          = finding.Spread
	DecisionGroups  = finding.DecisionGroups
	Selection       = finding.Selection
)

// Deadline is the cause of a context that ends because of a time limit, not because the program stops. If a Deadline ends
// evaluations, [Scheduler.Schedule] reports an [Overrun] and not an error.
type Deadline = deadline.Deadline

// WithDeadline returns a context that ends after the duration after. The error message names limit, the time limit of all
// attempts together. limit is longer than after if the evaluations continue later in another context.
func WithDeadline(ctx context.Context, after, limit time.Duration) (context.Context, context.CancelFunc) {
	return deadline.With(ctx, after, limit)
}

// Types for the outcome of one cluster. If a cluster is not selected, it has a Reason.
type (
	// Candidate is a cluster that passed the filters.
	Candidate = candidate.Candidate
	// Filtered describes the effect of one filter.
	Filtered = candidate.Filtered
	// Removal is a cluster that a filter removed.
	Removal = candidate.Removal
	// Reason says why a cluster is not selected. Each of the following types is a Reason.
	Reason = candidate.Reason
	// Unmatched means that no predicate matches the cluster.
	Unmatched = candidate.Unmatched
	// Failed means that the evaluation of the cluster failed.
	Failed = candidate.Failed
	// Late means that the evaluation of the cluster did not end in time.
	Late = candidate.Late
	// Untolerated means that the cluster has a taint that no toleration matches.
	Untolerated = candidate.Untolerated
	// NoTopology means that the cluster lacks a label or claim that a spread constraint requires.
	NoTopology = candidate.NoTopology
	// Skewed means that enough clusters with the same topology value are selected.
	Skewed = candidate.Skewed
	// Surplus means that enough other clusters are selected.
	Surplus = candidate.Surplus
)

// Values of the annotation [wellknown.AnnotationTieBreak].
const (
	TieBreakName   = candidate.TieBreakName
	TieBreakRandom = candidate.TieBreakRandom
)

// Prioritizer is a prioritizer of a Placement with its weight.
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

// Types for the outputs of a decision. The caller writes a Decision to the hub in Steps.
type (
	// Decision is the wanted content of a Placement's PlacementDecisions.
	Decision = decision.Decision
	// Group is a decision group of a Decision.
	Group = decision.Group
	// Slice is the content of one PlacementDecision.
	Slice = decision.Slice
	// Step is one write of a PlacementDecision.
	Step = decision.Step
)

// MaxSliceLength is the maximum number of clusters in one PlacementDecision.
const MaxSliceLength = decision.MaxSliceLength

// Updates returns the steps that change the former PlacementDecisions of a Placement into the wanted ones. After each step, a
// cluster that stays selected is in at least one PlacementDecision. The caller must stop at the first step that fails or whose
// result is uncertain. Each write must require the object's resource version in former, or the version that an earlier step has
// made.
func Updates(former, wanted []*clusterv1beta1.PlacementDecision) []Step {
	return decision.Updates(former, wanted)
}

// Limits for a Placement. A Placement that exceeds one is misconfigured.
const (
	// MaxExpressions is the maximum number of CEL expressions in a Placement. MaxExpressionBytes is the maximum of their total
	// size.
	MaxExpressions     = plan.MaxExpressions
	MaxExpressionBytes = plan.MaxExpressionBytes
	// MaxParts is the maximum number of predicates. The numbers of prioritizers and of decision groups have the same limit.
	MaxParts = plan.MaxParts
	// MaxValues is the maximum total number of labels, requirements with their values, tolerations and sets in a Placement.
	MaxValues = plan.MaxValues
)
