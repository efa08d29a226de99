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

// Confirm notes that the hub has a result: neither PlacementDecisions nor the status of the Placement had to be written.
// Until the next decision [Scheduler.Unchanged] may report that none is needed.
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
// ([Scheduler.Confirm]) and still holds. If it returns false, the Placement has to be decided. Scores of Balance may differ
// for clusters that are selected anyway. requeue is [Result.Requeue] of the last result. Evaluations have the limits of
// [Scheduler.Schedule], and are remembered.
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
	if !r.stands(known) {
		known.Last = nil
		return false, time.Time{}
	}
	return true, known.Last.Until
}

// stands reports whether the last result holds. Then the clusters of the snapshot are those with which the next snapshot is
// compared.
func (r *run) stands(known *memory.Known) bool {
	last := known.Last
	if !last.MayStand(r.inputs(known.Plan), r.now, r.snapshot.Scores) {
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
