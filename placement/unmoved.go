// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/memo"
)

// When a cluster changes, every Placement that may choose it has to be decided, and most of them
// would decide the same again. To find that out takes a look at that cluster, and not at all others:
// if the hub has what a decision says, and nothing has changed since but some clusters, the decision
// is the same where the predicates say the same of each of them, and what the later steps read is
// the same. This is for decisions that stand as they are. Those that change are made by way of what
// is remembered.

// mostMoved is how many clusters may have changed. If there are more, the Placement is decided.
const mostMoved = 16

// standingBytes is the bound for what all Schedulers of a process keep of decisions that stand.
const standingBytes = 64 << 20

var standings = memo.New(standingBytes)

// fixpoint is what a decision was made from by which nothing on the hub changed.
type fixpoint struct {
	inputs
	// until is when time changes something, zero if it does not.
	until time.Time
	// placement is the version of the Placement, which has its status.
	placement version
	eligible  []string
	scores    cluster.ScoreFinder
	// clusters are those that there were to choose from, and sets the sets that they are in. Other
	// Placements have the same ones.
	clusters []*clusterv1.ManagedCluster
	sets     []int
	// places are, by rank, those that could be selected, if it is spread over them.
	places []int32
}

// Stands notes that the hub has what a result says of a Placement: nothing had to be written, neither
// PlacementDecisions nor status. Until a decision is made again, [Scheduler.Unmoved] may spare it.
func (s *Scheduler) Stands(placement *clusterv1beta1.Placement, result *Result) {
	f := result.fixpoint
	if f == nil || placement.ResourceVersion == "" || f.placement != (version{placement.UID, placement.ResourceVersion}) {
		return
	}
	s.mutex.Lock()
	memory := s.memories[placement.UID]
	s.mutex.Unlock()
	if memory == nil || memory.standing == nil {
		return
	}
	memory.mutex.Lock()
	defer memory.mutex.Unlock()
	memory.standing.Keep(f, f.size())
}

// size leaves out the clusters, which the hub's cache has, and lists of them that all Placements have.
func (f *fixpoint) size() memo.Size {
	return memo.Size{Parts: f.plan.expressions(), Bytes: len(f.places) * int(unsafe.Sizeof(int32(0)))}
}

// standingOn is the fixpoint of a run, nil if an expression asks for the time, or if the hub has nothing of
// the Placement: a decision has one object at least, so that something has to be written.
func (r *run) standingOn() *fixpoint {
	available := r.result.Available
	if r.result.Timed || available.fleeting || r.placement.ResourceVersion == "" || r.former == noFormer {
		return nil
	}
	return &fixpoint{
		inputs: r.standing(), until: r.horizon.time, placement: version{r.placement.UID, r.placement.ResourceVersion},
		eligible: available.Eligible, scores: r.snapshot.Scores, clusters: available.Clusters, sets: available.sets,
		places: r.placesToSpread(),
	}
}

// standing are the inputs but for what only tells how high scores are: where all clusters are
// selected that there are, those that Balance gives are not what other Placements are followed for.
func (r *run) standing() inputs {
	inputs := r.inputs()
	if r.placement.Spec.NumberOfClusters == nil && len(r.plan.spread) == 0 && r.placement.Spec.SortBy != clusterv1beta1.PlacementSortByScore {
		inputs.version = 0
	}
	return inputs
}

// Unmoved tells whether deciding a Placement would change nothing, which it knows of decisions that
// stand ([Scheduler.Stands]) when only some clusters have changed since. false says nothing: then the
// Placement has to be decided. What Balance says of clusters that are selected anyway may be other
// scores. requeue is that of the last result: when time changes something at the earliest, zero if never.
// Evaluations are bounded as those of [Scheduler.Schedule] are.
func (s *Scheduler) Unmoved(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *Snapshot, now time.Time) (unmoved bool, requeue time.Time) {
	s.mutex.Lock()
	memory := s.memories[placement.UID]
	s.mutex.Unlock()
	if memory == nil || memory.standing == nil {
		return false, time.Time{}
	}
	memory.mutex.Lock()
	defer memory.mutex.Unlock()
	f := memory.standing.Look()
	if f == nil {
		return false, time.Time{}
	}
	r := s.newRun(ctx, placement, snapshot, now)
	defer r.alarm.close()
	next := r.unmoved(f, memory)
	if next == nil {
		memory.standing.Forget()
		return false, time.Time{}
	}
	if next != f {
		memory.standing.Keep(next, next.size())
	}
	return true, next.until
}

// unmoved returns the fixpoint with the clusters that there are now, nil if it is none any more.
func (r *run) unmoved(f *fixpoint, memory *memory) *fixpoint {
	r.plan = f.plan
	if r.plan.balances {
		r.version = r.snapshot.Decisions.current()
	}
	r.former = r.snapshot.Decisions.former(r.key)
	if f.placement != (version{r.placement.UID, r.placement.ResourceVersion}) || f.inputs != r.standing() ||
		!f.until.IsZero() && !r.now.Before(f.until) || r.plan.readsScores() && !sameScores(f.scores, r.snapshot.Scores) {
		return nil
	}
	available, err := available(r.placement, r.snapshot, r.jointOf)
	if err != nil || available.fleeting || len(available.Clusters) != len(f.clusters) ||
		!slices.Equal(available.Eligible, f.eligible) || !slices.Equal(available.sets, f.sets) {
		return nil
	}
	var moved, elsewhere []int
	for i, c := range available.Clusters {
		if c == f.clusters[i] {
			continue
		}
		if len(moved) == mostMoved || !r.alike(f.clusters[i], c) {
			return nil
		}
		moved = append(moved, i)
		if !r.inPlace(f.clusters[i], c) {
			elsewhere = append(elsewhere, i)
		}
	}
	if len(moved) == 0 {
		return f
	}
	if len(r.plan.predicates) > 0 && !r.saysTheSame(memory, f.clusters, available.Clusters, moved) {
		return nil
	}
	if len(elsewhere) > 0 && !r.picksTheSame(f, available, elsewhere) {
		return nil
	}
	next := *f
	next.clusters, next.sets, next.scores = available.Clusters, available.sets, r.snapshot.Scores
	return &next
}

// readsScores tells whether a decision depends on AddOnPlacementScores.
func (p *plan) readsScores() bool { return p.reads.Computed || p.reads.Names.Len() > 0 }

// sameScores compares what finds scores, as far as it can be compared.
func sameScores(a, b cluster.ScoreFinder) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// saysTheSame asks the predicates about the clusters that have changed, and tells whether they say of
// each what they said of its former object. The new answers are remembered with the others, so that
// nothing is asked twice.
func (r *run) saysTheSame(memory *memory, former, clusters []*clusterv1.ManagedCluster, moved []int) bool {
	known := memory.look()
	if known != nil && known.plan != r.plan {
		known = nil
	}
	grown := false
	defer func() {
		if grown {
			memory.recount(known)
		}
	}()
	for _, i := range moved {
		before := known.answerOn(former[i])
		var was match
		if before != nil {
			was = before.match
		} else if one, ok := r.verdict(former[i]); ok {
			was = one.match
		} else {
			return false
		}
		is, ok := r.verdict(clusters[i])
		if !ok {
			return false
		}
		if before != nil && !before.renew(is) {
			grown = true
		}
		if !sameVerdict(was, is.match) {
			// What is settled takes the answers that it had for those that there are.
			memory.settled.Forget()
			return false
		}
	}
	return true
}

// verdict evaluates, and tells whether what is found holds for ever.
func (r *run) verdict(of *clusterv1.ManagedCluster) (answer, bool) {
	one, err := r.evaluate(r.plan, of)
	if err != nil || r.result.Overrun != nil || one.fleeting {
		return answer{}, false
	}
	return one, one.match.holds == nil && !slices.ContainsFunc(one.reads, func(read read) bool { return !read.until.IsZero() })
}

// sameVerdict tells whether two answers lead to the same decision and the same words about it.
func sameVerdict(a, b match) bool {
	return a.predicate == b.predicate && sameReason(a.reason, b.reason)
}

// answerOn is what is remembered of an object, nil if nothing is.
func (k *known) answerOn(object *clusterv1.ManagedCluster) *answer {
	if k == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(k.answers, object.Name, func(a answer, name string) int { return strings.Compare(a.object.Name, name) })
	if !found || k.answers[i].fleeting || versionOf(k.answers[i].object) != versionOf(object) {
		return nil
	}
	return &k.answers[i]
}
