// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/memo"
)

// A Scheduler has one memory. It remembers of each Placement what its spec means (the plan), what its predicates
// say of each version of a cluster (the verdicts), and what the last result was made from. What it remembers grows
// with Placements times clusters, and with expressions, which tenants write. So it has a bound in bytes: what is
// known of the Placement that was not decided for the longest time is forgotten first, and found again when that is
// decided the next time. Nothing is remembered of a Placement without UID or generation, as dry runs have it.

// memoryBytes is the bound of the memory of a Scheduler.
const memoryBytes = 256 << 20

// memory is that of one Placement. It is locked while the Placement is decided.
type memory struct {
	mutex sync.Mutex
	// slot is nil if nothing is to be remembered.
	slot *memo.Slot[remembered]
}

// remembered is what is known of one Placement.
type remembered struct {
	// generation is that of the spec that plan comes from.
	generation int64
	plan       *plan
	verdicts   verdicts
	// begun is when a decision was begun that is not made yet, for lack of time.
	begun begun
	// last is what the last result was made from. It is nil if something that was found since makes it another one.
	last *lastResult
}

// memoryOf returns the memory of a Placement, locked, and what it has with the plan. The caller releases it. The
// error is that of the context.
func (s *Scheduler) memoryOf(ctx context.Context, placement *clusterv1beta1.Placement) (*memory, *remembered, error) {
	m := &memory{}
	if placement.UID != "" && placement.Generation != 0 {
		s.mutex.Lock()
		if before := s.memories[placement.UID]; before != nil {
			m = before
		} else {
			m.slot = memo.NewSlot[remembered](s.memory)
			s.memories[placement.UID] = m
		}
		s.mutex.Unlock()
	}
	m.mutex.Lock()
	known := m.look()
	if known.plan == nil || known.generation != placement.Generation {
		plan, err := s.plan(ctx, placement)
		if err != nil {
			m.mutex.Unlock()
			return nil, nil, err
		}
		known = remembered{generation: placement.Generation, plan: plan}
	}
	return m, &known, nil
}

// existing is the memory of a Placement, nil if there is none.
func (s *Scheduler) existing(of types.UID) *memory {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.memories[of]
}

// look returns what is kept, nothing if that was forgotten.
func (m *memory) look() remembered {
	if m != nil && m.slot != nil {
		if kept := m.slot.Look(); kept != nil {
			return *kept
		}
	}
	return remembered{}
}

// release keeps what is known if there is room, and unlocks the memory.
func (m *memory) release(known *remembered) {
	defer m.mutex.Unlock()
	if m.slot != nil {
		m.slot.Keep(known, known.size())
	}
}

// Prepared reports whether it is known what the spec of a Placement means, so that deciding it compiles
// nothing.
func (s *Scheduler) Prepared(placement *clusterv1beta1.Placement) bool {
	known := s.existing(placement.UID).look()
	return !hasExpressions(&placement.Spec) || known.plan != nil && known.generation == placement.Generation
}

// Prepare finds out what the spec of a Placement means, for [Scheduler.Schedule]. Its expressions are
// compiled in the turns of its namespace. The error is that of the context.
func (s *Scheduler) Prepare(ctx context.Context, placement *clusterv1beta1.Placement) error {
	memory, known, err := s.memoryOf(ctx, placement)
	if err != nil {
		return fmt.Errorf("prepare Placement %s/%s: %w", placement.Namespace, placement.Name, err)
	}
	memory.release(known)
	return nil
}

// Forget frees what is remembered of a Placement. It must be called when one is
// deleted.
func (s *Scheduler) Forget(placement types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if forgotten := s.memories[placement]; forgotten != nil {
		forgotten.slot.Forget()
	}
	delete(s.memories, placement)
}

// size is an estimate of what is known of a Placement. It has the compiled expressions, which Placements with the
// same ones share, and lists of clusters, which those that choose from the same sets share. The clusters
// themselves are those of the snapshot.
func (k *remembered) size() memo.Size {
	size := memo.Size{Bytes: planBytes + k.verdicts.bytes + int(unsafe.Sizeof(lastResult{})), Parts: k.plan.parts}
	lists := [][]*clusterv1.ManagedCluster{k.verdicts.of}
	if k.last != nil {
		lists = append(lists, k.last.clusters)
	}
	if k.last != nil && k.last.ranking != nil {
		size.Bytes += k.last.ranking.bytes()
	}
	for _, list := range lists {
		if n := len(list); n > 0 {
			size.Parts = append(slices.Clip(size.Parts), memo.Part{Of: &list[0], Bytes: 2 * n * wordBytes})
		}
	}
	return size
}

const (
	// planBytes is about what a plan takes besides its expressions.
	planBytes = 4 << 10
	wordBytes = int(unsafe.Sizeof(uintptr(0)))
)

// measure finds the expressions of the predicates. Decision groups have none.
func (p *plan) measure() {
	for _, selector := range p.predicates {
		if selector == nil {
			continue
		}
		for _, program := range selector.Programs() {
			p.parts = append(p.parts, memo.Part{Of: program, Bytes: program.Size()})
		}
	}
}

// When a cluster changes, every Placement that may choose it has to be decided, and most of them would be decided as
// before: most changes are a condition, or a version of an agent. If the hub has what the last result says, nothing
// has changed since but some clusters, and these are alike in all that the Placement reads, then the last result
// stands. What a Placement reads of a cluster is:
//
//   - what the predicates say of it,
//   - the set that it is in, and its taints,
//   - the amounts that prioritizers of the Placement read,
//   - the labels and claims that it is spread over, if others would be selected because of them, and all of them if
//     there are decision groups, or if a condition names what clusters have.

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
	// bound are the sets that a condition names, nil if none does.
	bound   []string
	scores  cluster.ScoreFinder
	ranking *ranking
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
		ranking: r.ranking, named: r.named, bound: r.namedSets(),
	}
}

// namedSets are the sets that a condition may name.
func (r *run) namedSets() []string {
	if !r.result.NamesSets {
		return nil
	}
	return r.result.Available.Bound
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
	if err != nil || available.fleeting || !slices.Equal(available.Eligible, last.eligible) ||
		last.bound != nil && !slices.Equal(available.Bound, last.bound) || !slices.Equal(available.sets, last.sets) ||
		!slices.EqualFunc(available.Clusters, last.clusters, r.alike) {
		return false
	}
	moved := r.moved(last.clusters)
	if len(moved) > 0 && !last.ranking.picksTheSame(moved, available.Clusters, r.placement.Spec.NumberOfClusters) {
		return false
	}
	if err := r.judge(known, true); err != nil || r.result.Overrun != nil || known.last == nil {
		return false
	}
	last.clusters, last.sets = available.Clusters, available.sets
	return true
}

// moved are the places of clusters that are in other topologies than before.
func (r *run) moved(before []*clusterv1.ManagedCluster) (moved []int) {
	if len(r.plan.spread) == 0 {
		return nil
	}
	for i, c := range r.result.Available.Clusters {
		if c != before[i] && slices.ContainsFunc(r.plan.spread, func(s spreadConstraint) bool {
			one, is := s.topology(before[i])
			other, isOther := s.topology(c)
			return one != other || is != isOther
		}) {
			moved = append(moved, i)
		}
	}
	return moved
}

// alike reports whether two objects are versions of a cluster in which the steps after the predicates read the
// same, but for topologies.
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
