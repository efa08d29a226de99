// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

type handle = plugintest.Handle

const (
	driver    = plugintest.Driver
	className = plugintest.ClassName
	nodeName  = plugintest.NodeName
)

var (
	newHandle  = plugintest.NewHandle
	newMetrics = plugintest.NewMetrics
	features   = plugintest.Features
	class      = plugintest.Class
	slice      = plugintest.Slice
	deviceName = plugintest.DeviceName
	claim      = plugintest.Claim
	constrain  = plugintest.Constrain
	reference  = plugintest.Reference
	pod        = plugintest.Pod
	node       = plugintest.Node
)

// newShared returns the shared state for a scheduler with one profile. Explanations have no time limit.
func newShared() *profiles {
	shared := newProfiles(guard.New(clocktesting.NewFakePassiveClock(time.Now())), utilfeature.DefaultFeatureGate)
	shared.withTimeout = func(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
		return context.WithCancel(ctx)
	}
	return shared
}

// start returns the plugin with the given objects in its caches.
func start(t *testing.T, enabled bool, objects ...runtime.Object) (context.Context, *DynamicResourcesCEL) {
	t.Helper()
	return startMeasured(t, compbase.NewKubeRegistry(), enabled, objects...)
}

// startMeasured is like start. It registers the plugin's metrics with registry.
func startMeasured(t *testing.T, registry metrics.Registry, enabled bool, objects ...runtime.Object) (context.Context, *DynamicResourcesCEL) {
	t.Helper()
	measured, err := metrics.New(registry, time.Now)
	require.NoError(t, err)
	ctx, h := newHandle(t, objects...)
	pl, err := newPlugin(ctx, nil, h, features(), enabled, measured, newShared())
	require.NoError(t, err)
	h.Start(ctx, t, objects...)
	return ctx, pl
}

const (
	waitFor = 2 * time.Minute
	tick    = time.Millisecond

	ring2 = "devices.map(d, d.attributes['mla.example.com'].index).max() - " +
		"devices.map(d, d.attributes['mla.example.com'].index).min() == 1"
)

func typeOf(data fwk.StateData) reflect.Type { return reflect.TypeOf(data) }

// usedAllocator returns the allocator that is in the state of upstream's plugin after PreFilter.
func usedAllocator(t *testing.T, pl *DynamicResourcesCEL, state fwk.CycleState) structured.Allocator {
	t.Helper()
	data, err := state.Read(dynamicresources.Name)
	require.NoError(t, err)
	field, err := pl.exchange.allocator(data)
	require.NoError(t, err)
	return *field
}

func TestPodWithCELConstraintRunsOurs(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	require.IsType(t, &cycle.MeasuredAllocator{}, usedAllocator(t, pl, state))

	require.True(t, pl.Filter(ctx, state, pod(), node(nodeName)).IsSuccess())
	status = pl.Filter(ctx, state, pod(), node("node-2"))
	require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	require.Equal(t, "request mla: too few matching devices are free (0 of 2 requested)", status.Message())

	require.True(t, pl.Reserve(ctx, state, pod(), nodeName).IsSuccess())
	pending := pl.resolver.Manager.ResourceClaims().GetPendingAllocation("claim")
	require.NotNil(t, pending)
	var devices []string
	for _, result := range pending.Devices.Results {
		devices = append(devices, result.Device)
	}
	require.Equal(t, []string{"mla-2", "mla-3"}, devices, "0 and 2 are not contiguous")
	pl.Unreserve(ctx, state, pod(), nodeName)
	require.Nil(t, pl.resolver.Manager.ResourceClaims().GetPendingAllocation("claim"))
}

func TestAllocatedClaimsAreLeftAlone(t *testing.T) {
	c := constrain(t, claim(2), "ring2", ring2)
	c.Status.Allocation = &resourceapi.AllocationResult{}
	// Turning the gate off does not affect allocated claims.
	ctx, pl := start(t, false, class(), slice(0, 1), c)
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	require.Nil(t, usedAllocator(t, pl, state))
}

func TestDisabledDynamicResourceAllocation(t *testing.T) {
	off := features()
	off.EnableDynamicResourceAllocation = false
	pl, err := newPlugin(t.Context(), nil, &handle{}, off, true, newMetrics(t), newShared())
	require.NoError(t, err)
	_, status := pl.PreFilter(t.Context(), framework.NewCycleState(), pod(), nil)
	require.True(t, status.IsSkip())
}

func TestArgumentsOfAnotherKind(t *testing.T) {
	_, err := newPlugin(t.Context(), &v1.Pod{}, &handle{}, features(), true, newMetrics(t), newShared())
	require.EqualError(t, err, "DynamicResourcesCEL: got arguments of type *v1.Pod, want an object of kind DynamicResourcesCELArgs")
}
