// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"time"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement/internal/deadline"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
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
