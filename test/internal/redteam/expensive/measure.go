// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package expensive

import (
	"context"
	"fmt"
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
	// Deadline is the maximum duration of one evaluation.
	Deadline = 250 * time.Millisecond
	// MostBytes is the maximum number of bytes that one evaluation may allocate, including bytes that are garbage afterwards.
	MostBytes = 512 << 20

	// mostPerUnit is the maximum time per unit of CEL cost, ten times the nominal time. mostBytesPerUnit is the maximum number
	// of bytes per unit, four times the largest measured value of any function. Evaluations below leastTime and leastBytes are
	// always accepted.
	mostPerUnit      = 2500 * time.Nanosecond
	mostBytesPerUnit = 2 << 10
	leastTime        = 25 * time.Millisecond
	leastBytes       = 4 << 20
	// again is the number of times that a suspicious evaluation is measured again. The smallest result counts, because other
	// load can only increase it.
	again = 12
)

// Evaluation evaluates a compiled expression.
type Evaluation func(context.Context) (cost uint64, err error)

// An Environment compiles expressions that can read its variables.
type Environment struct {
	Name    string
	Calls   *Calls
	Compile func(expression string) (Evaluation, error)
}

// Devices returns the environment for constraints in claims.
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

// Clusters returns the environment for Placements.
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

// Judge evaluates an expression and returns an error if it exceeds a limit. If timed is set, Judge also checks the time per
// unit of cost.
func Judge(ctx context.Context, evaluate Evaluation, timed bool) (wrong error) {
	runtime.LockOSThread() // now returns the time of a single thread
	defer runtime.UnlockOSThread()
	for range again {
		within, cancel := context.WithTimeout(ctx, Deadline)
		before, start := allocated(), now()
		cost, _ := evaluate(within) // an evaluation that fails counts, too
		taken, bytes := now()-start, allocated()-before
		cancel()
		switch {
		case taken > 2*Deadline:
			return fmt.Errorf("goes on for %s with a deadline of %s", taken, Deadline)
		case bytes > MostBytes:
			return fmt.Errorf("allocates %d MiB", bytes>>20)
		case bytes > leastBytes+cost*mostBytesPerUnit:
			wrong = fmt.Errorf("allocates %d bytes for a cost of %d", bytes, cost)
		case timed && taken > leastTime+time.Duration(cost)*mostPerUnit:
			wrong = fmt.Errorf("takes %s for a cost of %d", taken, cost)
		default:
			return nil
		}
	}
	return wrong
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
