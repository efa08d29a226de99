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

// Kinds of the plugins that an [Observer] measures.
const (
	KindFilter      = "filter"
	KindPrioritizer = "prioritizer"
	KindSpread      = "spread"
)

// Observer measures the time of decisions and plugins. Its methods are called concurrently and must not block.
type Observer interface {
	// ObservePlugin is called when a filter, a prioritizer or spreading starts. end is called when it has ended.
	ObservePlugin(kind, name string) (end func())
	// ObserveSchedule is called when [Scheduler.Schedule] starts. end is called with its result and its error.
	ObserveSchedule() (end func(*Result, error))
}

const (
	// DefaultEvaluationTimeout is the default time limit for the expressions of one predicate on one cluster. Expressions also
	// have a cost limit. Most expressions take some microseconds. A typical expression at the cost limit takes about 50
	// milliseconds of one core, and the slowest one would take a quarter of a second.
	DefaultEvaluationTimeout = 100 * time.Millisecond
	// DefaultTimeout is the default time limit for all evaluations of one decision. A typical Placement on thousands of clusters
	// takes milliseconds. Regular expressions on ten thousand clusters take half a second, and 1.5 seconds on a busy machine.
	DefaultTimeout = 5 * time.Second
)

// DefaultTick is the default interval at which the value of now() in expressions changes.
const DefaultTick = cluster.DefaultTick

// Config configures a [Scheduler].
type Config struct {
	// Environment compiles the selectors and expressions. Nil means an environment with default settings.
	Environment *cluster.Environment
	// Observer measures decisions. It may be nil.
	Observer Observer
	// EvaluationTimeout limits the time of the expressions of one predicate on one cluster. Zero means no limit, which is only
	// safe for trusted expressions. The context limits the time of all evaluations together (see [WithDeadline]).
	EvaluationTimeout time.Duration
	// Tick is the interval at which the value of now() in expressions changes, in whole seconds. A Placement that reads now() is
	// decided again at each tick. Zero means [DefaultTick].
	Tick time.Duration
}

// Scheduler decides Placements. Its memory changes no result: a new Scheduler returns the same result for the same input.
// Scheduler is safe for concurrent use. Concurrent calls for the same Placement wait for each other.
type Scheduler struct {
	environment *cluster.Environment
	observer    Observer
	timeout     time.Duration
	tick        time.Duration

	memberships hub.Memberships
	bound       *memo.Memory
	memory      *memory.Memory
}

// memoryBytes is the maximum size of a Scheduler's memory in bytes.
const memoryBytes = 256 << 20

// NewScheduler returns a Scheduler with an empty memory.
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

// observe tells the observer that a plugin starts. It returns the function to call when the plugin ends.
func (s *Scheduler) observe(kind, name string) (end func()) {
	if s.observer == nil {
		return func() {}
	}
	return s.observer.ObservePlugin(kind, name)
}

// Prepared reports whether the spec of a Placement is already compiled, or has no expressions to compile.
func (s *Scheduler) Prepared(placement *clusterv1beta1.Placement) bool {
	known := s.memory.Existing(placement.UID).Look()
	return !plan.HasExpressions(&placement.Spec) || known.Plan != nil && known.Generation == placement.Generation
}

// Prepare compiles the spec of a Placement for [Scheduler.Schedule]. Namespaces take turns in compiling. Prepare fails only if
// ctx is done.
func (s *Scheduler) Prepare(ctx context.Context, placement *clusterv1beta1.Placement) error {
	entry, known, err := s.memory.Open(ctx, placement)
	if err != nil {
		return fmt.Errorf("prepare Placement %s/%s: %w", placement.Namespace, placement.Name, err)
	}
	entry.Release(known)
	return nil
}

// Forget removes a Placement from the memory. It must be called when the Placement is deleted.
func (s *Scheduler) Forget(placement types.UID) { s.memory.Forget(placement) }
