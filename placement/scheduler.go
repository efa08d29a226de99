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

// Observer measures how long decisions and their steps take. The methods are called
// concurrently and must not block.
type Observer interface {
	// ObservePlugin is called when a filter, a prioritizer or spreading starts. The function
	// that it returns is called when that ends.
	ObservePlugin(kind, name string) (end func())
	// ObserveSchedule is called when [Scheduler.Schedule] starts. The function that it
	// returns is called with the outcome.
	ObserveSchedule() (end func(*Result, error))
}

const (
	// DefaultEvaluationTimeout limits the time of the expressions of one predicate on
	// one cluster, beside the limit on their cost. Most take some microseconds. A usual
	// expression at the limit of cost takes about 50 milliseconds of one core, and the most
	// expensive one would take a quarter of a second.
	DefaultEvaluationTimeout = 100 * time.Millisecond
	// DefaultTimeout limits the time of all evaluations of one decision. Those of a
	// usual Placement on thousands of clusters take milliseconds. Regular expressions on
	// ten thousand clusters take half a second, and three times that on a busy machine.
	DefaultTimeout = 5 * time.Second
)

// DefaultTick is the time between two values of now().
const DefaultTick = cluster.DefaultTick

// Config describes a [Scheduler].
type Config struct {
	// Environment compiles the selectors; nil means one with defaults.
	Environment *cluster.Environment
	// Observer measures decisions; nil means none.
	Observer Observer
	// EvaluationTimeout limits the time of the expressions of one predicate on one
	// cluster; zero is no limit, for trusted expressions. The context limits the time of all
	// evaluations, see [WithDeadline].
	EvaluationTimeout time.Duration
	// Tick is the time between two values of now() in expressions, in whole seconds. A Placement that reads now()
	// is decided again at each tick. Zero means [DefaultTick].
	Tick time.Duration
}

// Scheduler decides Placements. Its memory changes no result: the same input
// has the same result on every Scheduler. It is safe for concurrent use. Calls for the
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

// observe calls the observer when a plugin starts, and returns the function to call when the plugin ends.
func (s *Scheduler) observe(kind, name string) (end func()) {
	if s.observer == nil {
		return func() {}
	}
	return s.observer.ObservePlugin(kind, name)
}

// Prepared reports whether the spec of a Placement is compiled, or has no expressions.
func (s *Scheduler) Prepared(placement *clusterv1beta1.Placement) bool {
	known := s.memory.Existing(placement.UID).Look()
	return !plan.HasExpressions(&placement.Spec) || known.Plan != nil && known.Generation == placement.Generation
}

// Prepare compiles the spec of a Placement for [Scheduler.Schedule], in the turns of its namespace. The error is that
// of the context.
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
