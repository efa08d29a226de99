// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
)

// When a cluster changes, every Placement that may choose it has to be decided, and most of them would be decided as
// before: most changes are a condition, or a version of an agent. If the hub has what the last result says, nothing
// has changed since but some clusters, and these are alike in all that the Placement reads, then the last result
// stands. What a Placement reads of a cluster is:
//
//   - what the predicates say of it,
//   - the set that it is in, and its taints,
//   - the amounts that prioritizers of the Placement read,
//   - the labels and claims that it is spread over, and all of them if there are decision groups, or if a condition names what clusters have.

// lastResult is what the last result of a Placement was made from.
type lastResult struct {
	inputs
	// confirmed is set if nothing had to be written for it.
	confirmed bool
	// at is when it was made, until when time changes something, zero if it does not.
	at, until time.Time
	// clusters are those that there were to choose from, and sets the sets that they are in. Other
	// Placements have the same ones.
	clusters []*clusterv1.ManagedCluster
	sets     []int32
	eligible []string
	scores   cluster.ScoreFinder
	// named is set if a condition names labels or claims of the clusters.
	named bool
}

// inputs are what a result depends on besides time, clusters and scores.
type inputs struct {
	plan *plan
	// placement has its status, too.
	placement version
	decisions *Decisions
	// own is the version of the PlacementDecisions of the Placement, all that of all, if they matter.
	own, all uint64
}

// inputs are those of a run. Where all clusters are selected that there are, other Placements are not followed for
// the scores that Balance gives.
func (r *run) inputs() inputs {
	result := inputs{r.plan, version{r.placement.UID, r.placement.ResourceVersion}, r.snapshot.Decisions, r.own, 0}
	spec := &r.placement.Spec
	if r.plan.balances && (spec.NumberOfClusters != nil || len(r.plan.spread) > 0 || spec.SortBy == clusterv1beta1.PlacementSortByScore) {
		result.all = r.all
	}
	return result
}

// made is what the result of a run was made from. nil is never known again: something has no version, or the hub
// has nothing of the Placement, and a decision has one object at least, so that something has to be written.
func (r *run) made() *lastResult {
	available := r.result.Available
	if available.fleeting || r.placement.ResourceVersion == "" || r.own == 0 {
		return nil
	}
	return &lastResult{
		inputs: r.inputs(), at: r.now, until: r.horizon.time,
		clusters: available.Clusters, sets: available.sets, eligible: available.Eligible, scores: r.snapshot.Scores,
		named: r.named,
	}
}

// Confirm notes that the hub has what a result says of a Placement: nothing had to be written, neither
// PlacementDecisions nor status. Until a decision is made again, [Scheduler.Unchanged] may spare it.
func (s *Scheduler) Confirm(placement *clusterv1beta1.Placement, result *Result) {
	memory := s.existing(placement.UID)
	if memory == nil || result.last == nil {
		return
	}
	memory.mutex.Lock()
	defer memory.mutex.Unlock()
	if memory.look().last == result.last {
		result.last.confirmed = true
	}
}

// Unchanged reports whether deciding a Placement would change nothing: its last result is confirmed
// ([Scheduler.Confirm]) and stands. false says nothing: then the Placement has to be decided. What Balance says of
// clusters that are selected anyway may be other scores. requeue is that of the last result: when time changes
// something at the earliest, zero if never. Evaluations are bounded as those of [Scheduler.Schedule] are, and
// remembered.
func (s *Scheduler) Unchanged(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *Snapshot, now time.Time) (unchanged bool, requeue time.Time) {
	memory := s.existing(placement.UID)
	if memory == nil {
		return false, time.Time{}
	}
	memory.mutex.Lock()
	known := memory.look()
	last := known.last
	if last == nil || !last.confirmed {
		memory.mutex.Unlock()
		return false, time.Time{}
	}
	defer memory.release(&known)
	r := s.newRun(ctx, placement, snapshot, now)
	defer r.alarm.close()
	r.begin(&known)
	if !r.stands(&known) {
		known.last = nil
		return false, time.Time{}
	}
	return true, last.until
}

// stands reports whether the last result stands, and goes on from the clusters that there are now.
func (r *run) stands(known *remembered) bool {
	last := known.last
	if last.inputs != r.inputs() || r.now.Before(last.at) || !last.until.IsZero() && !r.now.Before(last.until) ||
		r.plan.readsScores() && !sameScores(last.scores, r.snapshot.Scores) {
		return false
	}
	r.named = last.named
	available, err := r.available()
	if err != nil || available.fleeting || !slices.Equal(available.Eligible, last.eligible) || !slices.Equal(available.sets, last.sets) ||
		!slices.EqualFunc(available.Clusters, last.clusters, r.alike) {
		return false
	}
	if err := r.judge(known, true); err != nil || r.result.Overrun != nil || known.last == nil {
		return false
	}
	last.clusters, last.sets = available.Clusters, available.sets
	return true
}

// alike reports whether two objects are versions of a cluster in which the steps after the predicates read the
// same.
func (r *run) alike(a, b *clusterv1.ManagedCluster) bool {
	if a == b {
		return true
	}
	if a.Name != b.Name || !slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, sameTaint) {
		return false
	}
	for _, resource := range r.plan.amounts {
		one, is := amountOf(&a.Status, resource)
		other, isOther := amountOf(&b.Status, resource)
		if one != other || is != isOther {
			return false
		}
	}
	for i := range r.plan.spread {
		one, is := r.plan.spread[i].topology(a)
		other, isOther := r.plan.spread[i].topology(b)
		if one != other || is != isOther {
			return false
		}
	}
	return len(r.plan.groups) == 0 && !r.named || maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Status.ClusterClaims, b.Status.ClusterClaims)
}

func sameTaint(a, b clusterv1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(&b.TimeAdded)
}

// readsScores reports whether a decision depends on AddOnPlacementScores.
func (p *plan) readsScores() bool { return p.reads.Computed || p.reads.Names.Len() > 0 }

// sameScores compares what finds scores, as far as it can be compared.
func sameScores(a, b cluster.ScoreFinder) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}
