// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/utils/clock"

	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/plugin"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/ledger"
)

// TestSchedulerPerf runs the workloads of performance-config.yaml with the label "short".
func TestSchedulerPerf(t *testing.T) {
	require.Positive(t, check(t, configFile, nil, nil))
}

// BenchmarkPerfScheduling runs pods with CEL constraints, and the same pods without constraints.
func BenchmarkPerfScheduling(b *testing.B) {
	benchmark(b, configFile, "celset", measured(nil))
}

// occupy publishes devices and creates allocated claims, as the workload's parameters say.
func occupy(tCtx ktesting.TContext, w *perf.Workload, nodes *corev1.NodeList) (topology.Topology, error) {
	o, err := occupancyOf(w)
	if err != nil {
		return topology.Topology{}, err
	}
	mesh, err := meshOf(o.devices)
	if err != nil {
		return topology.Topology{}, err
	}
	return mesh, o.occupy(tCtx, tCtx.Client(), mesh, nodes.Items)
}

// keepLedger starts a ledger that judges each allocation until the workload ends.
func keepLedger(tCtx ktesting.TContext, mesh topology.Topology) error {
	l := ledger.New(func(claim *resourceapi.ResourceClaim) string { return judge(mesh, claim) })
	ctx := tCtx.WithCancel()
	done, err := l.Follow(ctx, tCtx.Client(), "", "")
	if err != nil {
		return err
	}
	before := l.Entries().Allocations
	tCtx.Cleanup(func() {
		ctx.Cancel("the workload is done")
		<-done
		entries := l.Entries()
		require.Empty(tCtx, entries.Violations)
		require.Greater(tCtx, entries.Allocations, before)
	})
	return nil
}

// judge returns a mistake if the devices of a claim don't have the shape that the claim requests. Claims that exist from the
// start request no shape.
func judge(mesh topology.Topology, claim *resourceapi.ResourceClaim) string {
	shape, ok := claim.Labels["celset.dev/shape"]
	if !ok {
		return ""
	}
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		names = append(names, result.Device)
	}
	if len(names) != int(claim.Spec.Devices.Requests[0].Exactly.Count) || !isShape(mesh, shape, names) {
		return fmt.Sprintf("has %v, which is no %s", names, shape)
	}
	return ""
}

func isShape(mesh topology.Topology, shape string, names []string) bool {
	switch shape {
	case "grid", "block":
		return wiring.IsBlock(mesh, names, 2, 2)
	case "ring":
		return isStretch(mesh, names)
	case "match":
		devices, err := mesh.Select(names)
		return err == nil && !slices.ContainsFunc(devices, func(d topology.Device) bool {
			return d.Coordinates.Row/2 != devices[0].Coordinates.Row/2 || d.Coordinates.Col/2 != devices[0].Coordinates.Col/2
		})
	default:
		return true
	}
}

// isStretch reports whether the devices have consecutive numbers. The first device follows the last.
func isStretch(mesh topology.Topology, names []string) bool {
	ends := 0
	for i := range mesh.Devices {
		next := mesh.Devices[(i+1)%len(mesh.Devices)].Name
		if slices.Contains(names, mesh.Devices[i].Name) && !slices.Contains(names, next) {
			ends++
		}
	}
	return ends == 1
}

const configFile = "performance-config.yaml"

func TestMain(m *testing.M) {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

// prepare registers celset's feature gate, and sets the path of the etcd binary for scheduler_perf.
func prepare() error {
	if err := plugin.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		return err
	}
	perf.PluginNames = append(perf.PluginNames, slices.Sorted(maps.Keys(registry()))...)
	if err := perf.InitTests(); err != nil {
		return err
	}
	dir, err := controlplane.Build(context.Background(), "", os.Stderr, controlplane.Etcd)
	if err != nil {
		return err
	}
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func registry() frameworkruntime.Registry {
	return plugin.NewFactories(utilfeature.DefaultFeatureGate, guard.New(clock.RealClock{}))
}

// withRegistry returns an option that adds plugins. scheduler_perf lets benchmarks pass plugins as a parameter, but its
// function for tests, RunIntegrationPerfScheduling, does not.
func withRegistry(t *testing.T, registry frameworkruntime.Registry) perf.SchedulerPerfOption {
	t.Helper()
	option := reflect.TypeFor[perf.SchedulerPerfOption]()
	field, found := option.In(0).Elem().FieldByName("outOfTreePluginRegistry")
	require.True(t, found, "scheduler_perf has changed")
	require.Equal(t, reflect.TypeOf(registry), field.Type, "scheduler_perf has changed")
	set := func(args []reflect.Value) []reflect.Value {
		options := args[0].Elem()
		address := unsafe.Pointer(options.FieldByIndex(field.Index).UnsafeAddr())
		reflect.NewAt(field.Type, address).Elem().Set(reflect.ValueOf(registry))
		return nil
	}
	return reflect.MakeFunc(option, set).Interface().(perf.SchedulerPerfOption)
}
