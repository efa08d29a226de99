// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/testing/simulation"
	"github.com/celset/celset/plugin"
)

// simulated is a simulation of one pod. The pod needs four devices that form a ring, or any four if the simulation is plain.
type simulated struct {
	*simulation.Simulation
	ring shape.Scenario
}

func newSimulated(t testing.TB, name string, factory simulation.Factory, plain bool) simulated {
	t.Helper()
	var ring shape.Scenario
	for _, one := range shape.Scenarios() {
		if one.Name == "ring-12-4" {
			ring = one
		}
	}
	claim, err := ring.Claim()
	require.NoError(t, err)
	if plain {
		claim = ring.PlainClaim()
	}
	s, err := simulation.New(t.Context(), name, factory, plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate), claim, ring.DeviceClasses()...)
	require.NoError(t, err)
	return simulated{s, ring}
}

// try reports whether the pod would get devices of the ring.
func (s simulated) try(t testing.TB, node string, inUse shape.Set) bool {
	t.Helper()
	slices, err := s.ring.ResourceSlices(node)
	require.NoError(t, err)
	devices, status := s.Try(t.Context(), node, slices, func(_ string, i int) bool { return inUse.Has(i) })
	require.True(t, status.IsSuccess() || status.IsRejected(), "%v", status)
	return len(devices) == 4
}

// TestSimulation tries the same pod on a hundred nodes that do not exist.
func TestSimulation(t *testing.T) {
	goroutines := [2]int{}
	s := newSimulated(t, plugin.Name, func(ctx context.Context, args apiruntime.Object, handle fwk.Handle, features plfeature.Features) (fwk.Plugin, error) {
		goroutines[0] = runtime.NumGoroutine()
		pl, err := plugin.New(ctx, args, handle, features)
		goroutines[1] = runtime.NumGoroutine()
		return pl, err
	}, false)
	require.LessOrEqual(t, goroutines[1], goroutines[0], "New starts none")
	before := runtime.NumGoroutine()
	for i := range 100 {
		require.True(t, s.try(t, fmt.Sprint("template-", i), shape.Drawn("xx....xxxxxx")))
		require.False(t, s.try(t, fmt.Sprint("template-", i), shape.Drawn("..x..x..x..x")))
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// TestInPlaceOfUpstreams checks that the plugin takes upstream's arguments and then has upstream's name.
func TestInPlaceOfUpstreams(t *testing.T) {
	s := newSimulated(t, dynamicresources.Name, plugin.New, false)
	require.True(t, s.try(t, "node", shape.Drawn("..x....x..xx")))
	require.False(t, s.try(t, "node", shape.Drawn("..x..x..x..x")))
}

// BenchmarkSimulation tries a pod on a node that does not exist, with each of the two plugins.
func BenchmarkSimulation(b *testing.B) {
	for _, one := range []struct {
		name    string
		factory simulation.Factory
		plain   bool
	}{{"upstream/any four", dynamicresources.New, true}, {"celset/any four", plugin.New, true}, {"celset/ring", plugin.New, false}} {
		b.Run(one.name, func(b *testing.B) {
			s := newSimulated(b, dynamicresources.Name, one.factory, one.plain)
			for i := 0; b.Loop(); i++ {
				require.True(b, s.try(b, fmt.Sprint("template-", i), 0))
			}
		})
	}
}
