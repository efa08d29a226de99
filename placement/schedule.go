// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/memo"
)

// Kinds of what an [Observer] sees.
const (
	KindFilter      = "filter"
	KindPrioritizer = "prioritizer"
	KindSpread      = "spread"
)

// Observer is told what runs, to measure how long it takes. The methods are called
// concurrently and must not block.
type Observer interface {
	// ObservePlugin is called when a filter, a prioritizer or spreading starts, and
	// what it returns when that ends.
	ObservePlugin(kind, name string) (end func())
	// ObserveSchedule is called when [Scheduler.Schedule] starts, and what it returns
	// with the outcome when that ends.
	ObserveSchedule() (end func(*Result, error))
}

// DefaultTick is how far apart two values of now() are.
const DefaultTick = cluster.DefaultTick

// Config describes a [Scheduler].
type Config struct {
	// Environment compiles the selectors; nil means one with defaults.
	Environment *cluster.Environment
	// Observer is told what runs; nil means nobody is.
	Observer Observer
	// EvaluationTimeout is how long the expressions of one predicate may take on one
	// cluster; zero is without limit, for those who trust the expressions. How long all
	// may take together is said by the context, see [WithDeadline].
	EvaluationTimeout time.Duration
	// Tick is how far apart two values of now() in expressions are, in whole seconds: a Placement that reads it
	// is decided again at each. Zero is [DefaultTick].
	Tick time.Duration
}

// Scheduler decides Placements. What it remembers makes no difference: the same input
// has the same result on every Scheduler. It is safe for concurrent use; calls for the
// same Placement wait for each other.
type Scheduler struct {
	environment *cluster.Environment
	observer    Observer
	timeout     time.Duration
	tick        time.Duration

	memberships memberships
	memory      *memo.Memory
	mutex       sync.Mutex
	memories    map[types.UID]*memory
}

// NewScheduler returns a Scheduler that remembers nothing yet.
func NewScheduler(config Config) (*Scheduler, error) {
	if config.Environment == nil {
		environment, err := cluster.NewEnvironment(cel.Config{})
		if err != nil {
			return nil, err
		}
		config.Environment = environment
	}
	return &Scheduler{
		environment: config.Environment, observer: config.Observer, timeout: config.EvaluationTimeout,
		tick: cmp.Or(config.Tick, DefaultTick), memory: memo.New(memoryBytes), memories: map[types.UID]*memory{},
	}, nil
}

// run is the state of one call of Schedule.
type run struct {
	ctx       context.Context
	observer  Observer
	placement *clusterv1beta1.Placement
	key       types.NamespacedName
	snapshot  *Snapshot
	// memberships are of the clusters of the snapshot.
	memberships *memberships
	now         time.Time
	// begunAt is the time of the attempt which this one goes on with, clock what now() is, and tick how long.
	begunAt, clock time.Time
	tick           time.Duration
	plan           *plan
	// former is what the PlacementDecisions say now.
	former   *former
	recorder recorder
	alarm    alarm
	// shared are verdicts that clusters share.
	shared []*verdict
	// skipped is how many clusters were not evaluated, for lack of time.
	skipped int
	// named is set if a condition names labels or claims that clusters have.
	named bool
	// all and own are the versions of all PlacementDecisions and of those of the Placement.
	all, own uint64
	horizon  horizon
	result   *Result
	report   report
}

// Schedule decides one Placement. Neither it nor the snapshot is modified.
//
// An error means that the decision could not be made and should be tried again:
// the context ended, or the snapshot could not be read. The result is there all
// the same, with conditions to write and without a Decision. Anything wrong with
// objects is no error but a result, also that evaluations take longer than they may:
// than the Scheduler allows, or than ctx does if a [Deadline] ends it.
func (s *Scheduler) Schedule(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *Snapshot, now time.Time) (*Result, error) {
	if s.observer == nil {
		return s.decide(ctx, placement, snapshot, now)
	}
	end := s.observer.ObserveSchedule()
	result, err := s.decide(ctx, placement, snapshot, now)
	end(result, err)
	return result, err
}

func (s *Scheduler) decide(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *Snapshot, now time.Time) (*Result, error) {
	if placement == nil || snapshot == nil || now.IsZero() {
		return &Result{now: now}, errors.New("schedule: placement, snapshot and time must be given")
	}
	r := s.newRun(ctx, placement, snapshot, now)
	defer r.alarm.close()
	memory, known, err := s.memoryOf(withoutDeadline(ctx), placement)
	if err != nil {
		return r.result, fmt.Errorf("scheduling was interrupted: %w", err)
	}
	defer memory.release(known)
	if memory.slot == nil {
		// Objects of which nothing is remembered may be those of a list that is read for one decision.
		r.memberships = &memberships{}
	}
	if err = r.schedule(known); err != nil {
		r.report.stand(err)
	}
	r.result.Requeue = r.horizon.time
	return r.result, err
}

func (s *Scheduler) newRun(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *Snapshot, now time.Time) *run {
	r := &run{
		ctx: ctx, observer: s.observer, placement: placement, snapshot: snapshot, memberships: &s.memberships, now: now, tick: s.tick,
		key:      types.NamespacedName{Namespace: placement.Namespace, Name: placement.Name},
		recorder: recorder{snapshot: snapshot, now: now},
		alarm:    alarm{parent: ctx, limit: s.timeout},
		result:   &Result{now: now},
	}
	r.report = report{result: r.result, placement: placement, now: now}
	return r
}

// begin takes what is known of the Placement.
func (r *run) begin(known *remembered) {
	r.plan = known.plan
	r.begunAt = known.begun.orNow(r.now)
	r.clock = cluster.Moment(r.begunAt, r.tick)
	r.all, r.own = r.snapshot.Decisions.versions(r.key)
}

// available finds what there is to choose from.
func (r *run) available() (*Availability, error) {
	available, err := r.memberships.available(r.placement, r.snapshot)
	r.result.Available = available
	return available, err
}

func (r *run) schedule(known *remembered) error {
	r.begin(known)
	known.last = nil
	r.result.Reads, r.result.Prioritizers = r.plan.reads, r.plan.prioritizers
	wrong := append(misconfigurations(nil), r.plan.wrong...)
	wrong = append(wrong, wrongMetadata(r.placement)...)
	r.result.Misconfigurations = wrong
	r.report.configured(wrong)
	r.former = r.snapshot.Decisions.former(r.key)
	r.result.Standing = len(r.former.decisions)
	_, err := r.available()
	switch {
	case r.report.nothing(err):
		r.report.evaluated(nil, false)
		r.result.Decision = r.decide(nil)
		return nil
	case err != nil:
		r.report.evaluated(nil, false)
		r.report.satisfied(metav1.ConditionFalse, ReasonNotScheduled, fmt.Sprintf("%s; %s", err, r.result.standing()))
		return nil
	case len(wrong) > 0:
		r.report.evaluated(nil, false)
		r.report.misconfigured()
		return nil
	default:
		return r.choose(known)
	}
}

// nothing tells whether there is nothing to choose from, and says why. Then no
// predicate matters, nor whether it is understood: the decision is empty.
func (r *report) nothing(err error) bool {
	available := r.result.Available
	switch {
	case len(available.Bound) == 0:
		r.satisfied(metav1.ConditionFalse, ReasonNoBindings, "No valid ManagedClusterSetBindings found in placement namespace")
	case len(available.Eligible) == 0:
		r.satisfied(metav1.ConditionFalse, ReasonNoIntersection,
			fmt.Sprintf("None of ManagedClusterSets [%s] is bound to placement namespace", strings.Join(r.placement.Spec.ClusterSets, ",")))
	case err == nil && len(available.Clusters) == 0:
		r.satisfied(metav1.ConditionFalse, ReasonSetsEmpty,
			fmt.Sprintf("All ManagedClusterSets [%s] have no member ManagedCluster", strings.Join(available.Eligible, ",")))
	default:
		return false
	}
	return true
}

// stand replaces what the conditions say of a decision that was not made.
func (r *report) stand(err error) {
	r.result.Decision, r.result.Conditions = nil, r.result.Conditions[:1]
	r.satisfied(metav1.ConditionFalse, ReasonNotScheduled, fmt.Sprintf("%s; %s", err, r.result.standing()))
}

// choose filters, ranks and picks.
func (r *run) choose(known *remembered) error {
	end := r.observe(KindFilter, Predicate)
	err := r.judge(known, false)
	end()
	if err != nil {
		return err
	}
	candidates, failed := r.filter(known.verdicts.on)
	if r.result.Overrun != nil {
		r.report.overrun()
		return nil
	}
	if err := r.prioritize(candidates); err != nil {
		return err
	}
	ranked := r.rank(candidates)
	r.result.Candidates = ranked
	limit := len(candidates)
	if wanted := r.placement.Spec.NumberOfClusters; wanted != nil {
		limit = min(limit, int(*wanted))
	}
	r.pick(ranked, limit)
	selected := make([]*Candidate, 0, limit)
	for _, c := range candidates {
		if c.Selected {
			selected = append(selected, c)
		}
	}
	stands := len(selected) == 0 && r.lost(failed)
	r.report.evaluated(failed, stands)
	if stands {
		r.report.satisfied(metav1.ConditionFalse, ReasonNotScheduled,
			"No cluster can be selected because the evaluation failed; "+r.result.standing()+r.report.summary())
		return nil
	}
	r.unmatched()
	r.missingTopologies(candidates)
	r.report.scheduled(len(selected))
	r.result.Decision = r.decide(selected)
	known.last = r.made()
	r.result.last = known.last
	return r.interrupted()
}

// lost tells whether only failed evaluations keep clusters of the former decision
// from staying, so that with them it would be empty because of an error.
func (r *run) lost(failed []Removal) bool {
	if wanted := r.placement.Spec.NumberOfClusters; wanted != nil && *wanted == 0 {
		return false
	}
	for _, removal := range failed {
		if _, chosen := r.former.decisions[removal.Cluster]; chosen && r.tolerable(removal.Cluster) {
			return true
		}
	}
	return false
}

// interrupted is an error if nobody waits for the result any more. A Deadline is for
// evaluations: what follows them takes little time, and is done.
func (r *run) interrupted() error {
	if cause := r.cause(); cause != nil && deadlineIn(cause) == nil {
		return fmt.Errorf("scheduling was interrupted: %w", cause)
	}
	return nil
}

// cause is why the context ended, nil if it has not.
func (r *run) cause() error {
	if r.ctx.Err() == nil {
		return nil
	}
	return context.Cause(r.ctx)
}

func (r *run) observe(kind, name string) (end func()) {
	if r.observer == nil {
		return func() {}
	}
	return r.observer.ObservePlugin(kind, name)
}
