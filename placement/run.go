// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

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
	// ranking is of the candidates, nil if no spread constraint made a difference.
	ranking *ranking
	result  *Result
	report  report
}

func (s *Scheduler) newRun(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *Snapshot, now time.Time) *run {
	r := &run{
		ctx: ctx, observer: s.observer, placement: placement, snapshot: snapshot, memberships: &s.memberships, now: now, tick: s.tick,
		key:      types.NamespacedName{Namespace: placement.Namespace, Name: placement.Name},
		recorder: recorder{snapshot: snapshot, now: now},
		alarm:    alarm{parent: ctx, limit: s.timeout},
		result:   &Result{now: now},
	}
	r.all, r.own = snapshot.Decisions.versions(r.key)
	r.result.First = r.own == 0
	r.report = report{result: r.result, placement: placement, now: now}
	return r
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
