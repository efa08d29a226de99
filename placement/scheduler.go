// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/memo"
	"github.com/celset/celset/placement/internal/hub"
	"github.com/celset/celset/placement/internal/memory"
	"github.com/celset/celset/placement/internal/plan"
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

const (
	// DefaultEvaluationTimeout is how long the expressions of one predicate may take on
	// one cluster. It is for what a limit on cost does not foresee. Most take some
	// microseconds, a usual one that costs all that it may about 50 milliseconds of one
	// core; cost alone would allow a quarter of a second.
	DefaultEvaluationTimeout = 100 * time.Millisecond
	// DefaultTimeout is how long all evaluations of one decision may take. Those of a
	// usual Placement on thousands of clusters take milliseconds; regular expressions on
	// ten thousand take half a second, and three times that on a machine that is busy.
	DefaultTimeout = 5 * time.Second
)

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
	// may take together is said by the context, see [With].
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

	memberships hub.Memberships
	bound       *memo.Memory
	memory      *memory.Memory
}

// memoryBytes is the bound of the memory of a Scheduler.
const memoryBytes = 256 << 20

// NewScheduler returns a Scheduler that remembers nothing yet.
func NewScheduler(config Config) (*Scheduler, error) {
	if config.Environment == nil {
		environment, err := cluster.NewEnvironment(cel.Config{})
		if err != nil {
			return nil, err
		}
		config.Environment = environment
	}
	bound := memo.New(memoryBytes)
	return &Scheduler{
		environment: config.Environment, observer: config.Observer, timeout: config.EvaluationTimeout,
		tick: cmp.Or(config.Tick, DefaultTick), bound: bound, memory: memory.New(config.Environment, bound),
	}, nil
}

// observe tells the observer that a plugin starts, and returns what is to be called when it ends.
func (s *Scheduler) observe(kind, name string) (end func()) {
	if s.observer == nil {
		return func() {}
	}
	return s.observer.ObservePlugin(kind, name)
}

// Prepared reports whether it is known what the spec of a Placement means, so that deciding it compiles
// nothing.
func (s *Scheduler) Prepared(placement *clusterv1beta1.Placement) bool {
	known := s.memory.Existing(placement.UID).Look()
	return !plan.HasExpressions(&placement.Spec) || known.Plan != nil && known.Generation == placement.Generation
}

// Prepare finds out what the spec of a Placement means, for [Scheduler.Schedule]. Its expressions are
// compiled in the turns of its namespace. The error is that of the context.
func (s *Scheduler) Prepare(ctx context.Context, placement *clusterv1beta1.Placement) error {
	entry, known, err := s.memory.Open(ctx, placement)
	if err != nil {
		return fmt.Errorf("prepare Placement %s/%s: %w", placement.Namespace, placement.Name, err)
	}
	entry.Release(known)
	return nil
}

// Forget frees what is remembered of a Placement. It must be called when one is
// deleted.
func (s *Scheduler) Forget(placement types.UID) { s.memory.Forget(placement) }
