// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"time"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement/internal/hub"
	"github.com/celset/celset/placement/internal/memory"
)

// Confirm records that the hub already has a result: neither the PlacementDecisions nor the Placement's status need a write.
// After that, [Scheduler.Unchanged] may return true until the next decision.
func (s *Scheduler) Confirm(placement *clusterv1beta1.Placement, result *Result) {
	entry := s.memory.Existing(placement.UID)
	if entry == nil || result.last == nil {
		return
	}
	known := entry.Lock()
	defer entry.Unlock()
	if known.Last == result.last {
		result.last.Confirmed = true
	}
}

// Unchanged reports whether a decision on a Placement would change nothing, because its last result is confirmed
// ([Scheduler.Confirm]) and still valid. If it returns false, the Placement must be decided. If the selection does not depend
// on scores, Unchanged ignores changes of Balance scores. requeue is the [Result.Requeue] of the last result. Evaluations have
// the same limits as in [Scheduler.Schedule], and their verdicts are remembered.
func (s *Scheduler) Unchanged(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *hub.Snapshot, now time.Time) (unchanged bool, requeue time.Time) {
	entry := s.memory.Existing(placement.UID)
	if entry == nil {
		return false, time.Time{}
	}
	known := entry.Lock()
	if known.Last == nil || !known.Last.Confirmed {
		entry.Unlock()
		return false, time.Time{}
	}
	defer entry.Release(known)
	r := s.newRun(ctx, placement, snapshot, now)
	defer r.timer.Close()
	if !r.isUnchanged(known) {
		known.Last = nil
		return false, time.Time{}
	}
	return true, known.Last.Until
}

// isUnchanged reports whether the last result is still valid. If it is, isUnchanged stores the available clusters for the next
// comparison.
func (r *run) isUnchanged(known *memory.Known) bool {
	last := known.Last
	if !last.MayBeValid(r.inputs(known.Plan), r.now, r.snapshot.Scores) {
		return false
	}
	available, err := r.available()
	if err != nil || !last.ReadsTheSame(available) || !last.PicksTheSame(available, r.placement.Spec.NumberOfClusters) {
		return false
	}
	if _, same, err := r.judge(known, true); err != nil || r.result.Overrun != nil || !same {
		return false
	}
	last.Available = available
	return true
}
