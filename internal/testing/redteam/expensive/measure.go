// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package expensive

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/device"
)

const (
	// Deadline is that of one evaluation.
	Deadline = 250 * time.Millisecond
	// MostBytes is what one evaluation may allocate, also if it is garbage at once.
	MostBytes = 512 << 20

	// leastCost is what an evaluation is taken to cost at least: what costs less is over
	// before the clock has moved, and nobody can do it often without paying for the loop.
	leastCost = 200
	// again is how often what looks bad is measured: the least counts, since a machine can
	// only be slower than it is.
	again = 12
)

// Evaluation is an expression that compiled.
type Evaluation func(context.Context) (cost uint64, err error)

// Environment compiles expressions without variables, or with those that it has.
type Environment struct {
	Name    string
	Calls   *Calls
	Compile func(expression string) (Evaluation, error)
}

// Devices is the environment of constraints.
func Devices() (*Environment, error) {
	environment, err := device.NewEnvironment(cel.Config{CacheBytes: 1 << 20})
	if err != nil {
		return nil, err
	}
	index := int64(1)
	set := []*device.Device{device.New("driver.example.com", &resourceapi.Device{
		Name: "device", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: &index}},
	})}
	return &Environment{"devices", NewCalls(environment.Functions()), func(text string) (Evaluation, error) {
		expression, err := environment.Compile(context.Background(), text)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (uint64, error) {
			budget := cel.NewBudget(100 * cel.DefaultCostLimit)
			_, err := expression.Satisfied(ctx, set, budget)
			return budget.Spent(), err
		}, nil
	}}, nil
}

// Clusters is the environment of Placements.
func Clusters() (*Environment, error) {
	environment, err := cluster.NewEnvironment(cel.Config{CacheBytes: 1 << 20})
	if err != nil {
		return nil, err
	}
	object := cluster.New(&clusterv1.ManagedCluster{})
	return &Environment{"managedCluster", NewCalls(environment.Functions()), func(text string) (Evaluation, error) {
		selector, err := environment.Compile(context.Background(), clusterv1beta1.ClusterSelector{
			CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{text}},
		}, nil)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (uint64, error) {
			verdict, err := selector.Match(ctx, object, cluster.Hub{})
			return verdict.Cost, err
		}, nil
	}}, nil
}

// Measured is what an expression took.
type Measured struct {
	Expression string
	Call       *Call
	Cost       uint64
	Time       time.Duration
	Bytes      uint64
	// Failed is the error of the evaluation, or nil: failing takes time, too.
	Failed error
	// Overdue: it went on after its context had ended, for longer than anybody should wait.
	Overdue bool

	genome []byte
}

// PerUnit is the time of a unit of cost, in nanoseconds.
func (m *Measured) PerUnit() float64 { return float64(m.Time) / float64(max(m.Cost, leastCost)) }

// BytesPerUnit is what is allocated for a unit of cost.
func (m *Measured) BytesPerUnit() float64 { return float64(m.Bytes) / float64(max(m.Cost, leastCost)) }

// Measure evaluates once.
func Measure(ctx context.Context, evaluate Evaluation) Measured { return measure(ctx, evaluate, 1) }

// measure evaluates once or, to be sure of what looks bad, a few times.
func measure(ctx context.Context, evaluate Evaluation, times int) (m Measured) {
	runtime.LockOSThread() // its clock is the one that is read
	defer runtime.UnlockOSThread()
	for i := range times {
		within, cancel := context.WithTimeout(ctx, Deadline)
		bytes, start := allocated(), now()
		cost, err := evaluate(within)
		run := Measured{Cost: cost, Time: now() - start, Bytes: allocated() - bytes, Failed: err}
		cancel()
		// Its deadline may end it sooner or later, so that time and cost belong together.
		if i > 0 {
			run.Bytes = min(run.Bytes, m.Bytes)
		}
		if i == 0 || run.PerUnit() < m.PerUnit() {
			m = run
		}
		m.Bytes = run.Bytes
		if run.Time > 2*Deadline {
			m.Overdue = true
			break
		}
	}
	return m
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
