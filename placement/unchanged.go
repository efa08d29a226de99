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

// Confirm notes that the hub has what a result says of a Placement: nothing had to be written, neither
// PlacementDecisions nor status. Until a decision is made again, [Scheduler.Unchanged] may spare it.
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

// Unchanged reports whether deciding a Placement would change nothing: its last result is confirmed
// ([Scheduler.Confirm]) and stands. false says nothing: then the Placement has to be decided. What Balance says of
// clusters that are selected anyway may be other scores. requeue is that of the last result: when time changes
// something at the earliest, zero if never. Evaluations are bounded as those of [Scheduler.Schedule] are, and
// remembered.
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

// stands reports whether the last result stands, and goes on from the clusters that there are now.
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
