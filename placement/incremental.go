// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/cluster/clock"
	"github.com/celset/celset/cel/memo"
)

// What the predicates of a Placement say of a cluster depends on the spec of the
// Placement, the cluster, the AddOnPlacementScores that its expressions looked
// for, whether these are expired, and the time if they asked for it. An answer is
// remembered with the versions of all of it and with the period in which it holds, and is
// right as long as no version differs and the period is not over, nor begins later since
// the clock was put back. Objects without UID or version, as dry runs have them, are not
// remembered.
//
// An answer that was not found in time is none: it has no version, so the cluster is
// evaluated next time, and only it.
//
// What comes after the predicates is remembered as a whole, see settled.

// memory is what is known of one Placement. It is there while a decision is made; in between
// it is in kept, as long as there is room.
type memory struct {
	mutex sync.Mutex
	known
	// kept is nil if nothing is to be remembered, and then so are the others.
	kept *memo.Slot[known]
	// keptByLabels is in place of kept where the Placement has no CEL.
	keptByLabels *memo.Slot[known]
	settled      *memo.Slot[settled]
	standing     *memo.Slot[fixpoint]
}

// known is what is remembered of one Placement.
type known struct {
	// generation is that of the spec that plan comes from, zero if there is none.
	generation int64
	plan       *plan
	// answers are those of the last run, sorted by the names of the clusters.
	answers []answer
	// begun is when a decision was begun that is not made yet, for lack of time.
	begun begun
	// parts are what measured, a plan, takes.
	parts    []memo.Part
	measured *plan
	// counts is how often it was counted what the answers take.
	counts int
}

// answer is what was found of a cluster. There are as many as Placements and clusters, so it is small:
// clusters of which the same was found share it.
type answer struct {
	// object is the one with the version: while it is the same there is no need to look
	// into it.
	object *clusterv1.ManagedCluster
	*finding
}

// finding is a match with all that it depends on besides the object.
type finding struct {
	match match
	reads []read
	// fleeting tells that something that it depends on has no version.
	fleeting bool
	// counted is the last count of what the answers of its Placement take that it was part of.
	counted int
}

// renew replaces an answer by a newer one, and keeps the finding if that is the same: what is remembered
// would grow with each cluster that changes. It tells whether it did.
func (a *answer) renew(by answer) (isShared bool) {
	one, other := a.finding, by.finding
	if len(one.reads) > 0 || len(other.reads) > 0 || one.fleeting || other.fleeting || one.match.cost != other.match.cost ||
		one.match.holds != nil || other.match.holds != nil || !sameVerdict(one.match, other.match) {
		*a = by
		return false
	}
	a.object = by.object
	return true
}

// version tells the states of an object apart.
type version struct {
	uid      types.UID
	resource string
}

// read is an AddOnPlacementScore that was looked for. Its version is empty if there
// was none.
type read struct {
	name    string
	version version
	// until is when it expires, zero if it doesn't or has.
	until   time.Time
	expired bool
}

// rememberable tells whether two objects with this version must be equal.
func (v version) rememberable() bool { return v.resource != "" }

func versionOf(cluster *clusterv1.ManagedCluster) version {
	return version{cluster.UID, cluster.ResourceVersion}
}

func readOf(name string, object *clusterv1alpha1.AddOnPlacementScore, now time.Time) read {
	result := read{name: name}
	if object == nil {
		return result
	}
	result.version = version{object.UID, object.ResourceVersion}
	if until := object.Status.ValidUntil; until != nil {
		if result.expired = now.After(until.Time); !result.expired {
			result.until = until.Time
		}
	}
	return result
}

// memoryOf returns the locked memory of a Placement, with its plan. The caller releases it. The error is
// that of the context.
func (s *Scheduler) memoryOf(ctx context.Context, placement *clusterv1beta1.Placement) (*memory, error) {
	result := &memory{}
	if placement.UID != "" && placement.Generation != 0 {
		s.mutex.Lock()
		if before := s.memories[placement.UID]; before != nil {
			result = before
		} else {
			result.kept, result.keptByLabels = memo.NewSlot[known](remembered), memo.NewSlot[known](selectedByLabels)
			result.settled, result.standing = memo.NewSlot[settled](decided), memo.NewSlot[fixpoint](standings)
			s.memories[placement.UID] = result
		}
		s.mutex.Unlock()
	}
	result.mutex.Lock()
	result.recall()
	if result.plan == nil || result.generation != placement.Generation {
		plan, err := s.plan(ctx, placement)
		if err != nil {
			result.known = known{}
			result.mutex.Unlock()
			return nil, err
		}
		result.generation, result.plan, result.answers, result.begun = placement.Generation, plan, nil, begun{}
	}
	return result, nil
}

// Prepared reports whether it is known what the spec of a Placement means, so that deciding it compiles
// nothing.
func (s *Scheduler) Prepared(placement *clusterv1beta1.Placement) bool {
	if !timed(&placement.Spec) {
		return true
	}
	s.mutex.Lock()
	memory := s.memories[placement.UID]
	s.mutex.Unlock()
	if memory == nil {
		return false
	}
	kept := memory.look()
	return kept != nil && kept.generation == placement.Generation
}

// Prepare finds out what the spec of a Placement means, for [Scheduler.Schedule]. Its expressions are
// compiled in the turns of its namespace. The error is that of the context.
func (s *Scheduler) Prepare(ctx context.Context, placement *clusterv1beta1.Placement) error {
	memory, err := s.memoryOf(ctx, placement)
	if err != nil {
		return fmt.Errorf("prepare Placement %s/%s: %w", placement.Namespace, placement.Name, err)
	}
	memory.release()
	return nil
}

// Forget frees what is remembered of a Placement. It must be called when one is
// deleted.
func (s *Scheduler) Forget(placement types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if forgotten := s.memories[placement]; forgotten != nil {
		forgotten.kept.Forget()
		forgotten.keptByLabels.Forget()
		forgotten.settled.Forget()
		forgotten.standing.Forget()
	}
	delete(s.memories, placement)
}

// recorder finds AddOnPlacementScores and notes which ones it was asked for.
type recorder struct {
	snapshot *Snapshot
	now      time.Time
	reads    []read
	// fleeting tells that one has no version.
	fleeting bool
	err      error
}

// FindScore asks the snapshot.
func (r *recorder) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	object, err := r.snapshot.score(namespace, name)
	if err != nil {
		r.err = fmt.Errorf("get AddOnPlacementScore %s/%s: %w", namespace, name, err)
		return nil, err
	}
	read := readOf(name, object, r.now)
	r.fleeting = r.fleeting || object != nil && !read.version.rememberable()
	r.reads = append(r.reads, read)
	return object, nil
}

// matches returns the verdict on each of the clusters, which are sorted by name,
// from memory where it holds.
func (r *run) matches(memory *memory, clusters []*clusterv1.ManagedCluster) ([]answer, error) {
	if memory.covers(clusters) {
		return memory.answers, r.refresh(memory, clusters)
	}
	r.unsure = true
	known, answers := memory.answers, make([]answer, 0, len(clusters))
	for _, c := range clusters {
		for len(known) > 0 && known[0].object.Name < c.Name {
			known = known[1:]
		}
		if len(known) > 0 && known[0].object.Name == c.Name {
			holds, err := r.holds(&known[0], c)
			if err != nil {
				return nil, err
			}
			if holds {
				answers = append(answers, known[0])
				continue
			}
		}
		one, err := r.evaluate(memory.plan, c)
		if err != nil {
			return nil, err
		}
		answers = append(answers, one)
	}
	return answers, nil
}

// covers tells whether there is an answer on each of the clusters, and no other.
func (m *memory) covers(clusters []*clusterv1.ManagedCluster) bool {
	if len(m.answers) != len(clusters) {
		return false
	}
	for i, c := range clusters {
		if a := &m.answers[i]; a.object != c && a.object.Name != c.Name {
			return false
		}
	}
	return true
}

// refresh replaces the answers that don't hold any more. Each replaced one is right
// even if a later one fails.
func (r *run) refresh(memory *memory, clusters []*clusterv1.ManagedCluster) error {
	for i, c := range clusters {
		holds, err := r.holds(&memory.answers[i], c)
		if err != nil {
			return err
		}
		if holds {
			continue
		}
		one, err := r.evaluate(memory.plan, c)
		if err != nil {
			return err
		}
		r.renewed = append(r.renewed, renewed{i, memory.answers[i].match})
		memory.answers[i].renew(one)
	}
	return nil
}

// shared is the period of the cluster before if it is the same: it is that of most of them.
func (r *run) shared(holds *clock.Period) *clock.Period {
	if holds != nil && (r.period == nil || *r.period != *holds) {
		r.period = holds
	}
	if holds == nil {
		return nil
	}
	return r.period
}

// sharedReason is that of a cluster before if it says the same: there are few, and many clusters.
func (r *run) sharedReason(reason Reason) Reason {
	if reason == nil {
		return nil
	}
	for _, known := range r.reasons {
		if sameReason(known, reason) {
			return known
		}
	}
	if _, is := reason.(*Unmatched); is && len(r.reasons) < mostReasons {
		r.reasons = append(r.reasons, reason)
	}
	return reason
}

// mostReasons is how many reasons clusters share.
const mostReasons = 16

// holds tells whether nothing that an answer depends on has changed.
func (r *run) holds(a *answer, cluster *clusterv1.ManagedCluster) (bool, error) {
	if a.fleeting || a.object != cluster && versionOf(a.object) != versionOf(cluster) || !a.match.holds.Has(r.clock) {
		return false, nil
	}
	a.object = cluster
	for _, known := range a.reads {
		name := known.name
		object, err := r.snapshot.score(cluster.Name, name)
		if err != nil {
			return false, fmt.Errorf("get AddOnPlacementScore %s/%s: %w", cluster.Name, name, err)
		}
		if readOf(name, object, r.now) != known {
			return false, nil
		}
	}
	return true, nil
}

// evaluate asks the predicates. It fails if the context ends or the snapshot does;
// a failed expression is an answer, and so is that time was too short.
func (r *run) evaluate(plan *plan, of *clusterv1.ManagedCluster) (answer, error) {
	if r.hurries() {
		return r.late(of, nil), nil
	}
	var found finding
	recorder := &r.recorder
	recorder.reads, recorder.fleeting = nil, !versionOf(of).rememberable()
	var late error
	found.match, late = plan.predicates.match(&r.alarm, of, cluster.Hub{Scores: recorder, Now: r.now, Clock: r.clock})
	if err := r.interrupted(); err != nil {
		return answer{}, err
	}
	if recorder.err != nil {
		return answer{}, recorder.err
	}
	r.result.Evaluated++
	r.result.Cost += found.match.cost
	found.match.holds = r.shared(found.match.holds)
	if late != nil {
		return r.late(of, late), nil
	}
	found.match.reason = r.sharedReason(found.match.reason)
	found.reads, found.fleeting = recorder.reads, recorder.fleeting
	return answer{of, r.sharedFinding(&found)}, nil
}

// sharedFinding is that of a cluster before if it is the same.
func (r *run) sharedFinding(found *finding) *finding {
	alone := len(found.reads) > 0 || found.fleeting
	if !alone && r.last != nil && r.last.match == found.match {
		return r.last
	}
	if !alone {
		for _, known := range r.findings {
			if known.match == found.match {
				r.last = known
				return known
			}
		}
	}
	kept := *found
	if !alone && len(r.findings) < mostFindings {
		r.findings = append(r.findings, &kept)
		r.last = &kept
	}
	return &kept
}

// mostFindings is how many findings are compared. They differ in what the evaluation cost, too.
const mostFindings = 64
