// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/plugin"
)

// lists are what a program that simulates scheduling has in place of a cluster.
type lists struct {
	claims  map[string]*resourceapi.ResourceClaim
	pending map[types.UID]*resourceapi.ResourceClaim
	slices  []*resourceapi.ResourceSlice
	classes []*resourceapi.DeviceClass
}

type (
	claims    struct{ *lists }
	sliceList struct{ *lists }
	classList struct{ *lists }
)

func (l *lists) ResourceClaims() fwk.ResourceClaimTracker                 { return claims{l} }
func (l *lists) ResourceSlices() fwk.ResourceSliceLister                  { return sliceList{l} }
func (l *lists) DeviceClasses() fwk.DeviceClassLister                     { return classList{l} }
func (l *lists) DeviceClassResolver() fwk.DeviceClassResolver             { return classList{l} }
func (classList) GetDeviceClass(v1.ResourceName) *resourceapi.DeviceClass { return nil }
func (c classList) List() ([]*resourceapi.DeviceClass, error)             { return c.classes, nil }

func (c classList) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c.classes {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

func (s sliceList) ListWithDeviceTaintRules() ([]*resourceapi.ResourceSlice, error) {
	return s.slices, nil
}

func (c claims) List() (all []*resourceapi.ResourceClaim, err error) {
	for _, claim := range c.claims {
		all = append(all, claim)
	}
	return all, nil
}

func (c claims) Get(namespace, name string) (*resourceapi.ResourceClaim, error) {
	if claim := c.claims[namespace+"/"+name]; claim != nil {
		return claim, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), name)
}

func (c claims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	all := sets.New[structured.DeviceID]()
	for _, claim := range c.pending {
		for _, d := range claim.Status.Allocation.Devices.Results {
			all.Insert(structured.MakeDeviceID(d.Driver, d.Pool, d.Device))
		}
	}
	return all, nil
}

func (c claims) GatherAllocatedState() (*structured.AllocatedState, error) {
	devices, err := c.ListAllAllocatedDevices()
	return &structured.AllocatedState{
		AllocatedDevices: devices, AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](), AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}, err
}

func (c claims) SignalClaimPendingAllocation(uid types.UID, claim *resourceapi.ResourceClaim) error {
	c.pending[uid] = claim
	return nil
}

func (c claims) GetPendingAllocation(uid types.UID) *resourceapi.AllocationResult {
	if claim := c.pending[uid]; claim != nil {
		return claim.Status.Allocation
	}
	return nil
}

func (c claims) MaybeRemoveClaimPendingAllocation(uid types.UID, _ bool) (deleted bool) {
	_, deleted = c.pending[uid]
	delete(c.pending, uid)
	return deleted
}

func (claims) AssumeClaimAfterAPICall(*resourceapi.ResourceClaim) error { return nil }
func (claims) AssumedClaimRestore(_, _ string)                          {}

// simulation is a framework as an autoscaler makes it: without a client, over lists of its own.
type simulation struct {
	*lists
	frameworkruntime.Registry
	framework framework.Framework
	pod       *v1.Pod
}

// newSimulation has a pod that asks for four devices of a ring.
func newSimulation(t testing.TB, name string, factory func(context.Context, apiruntime.Object, fwk.Handle, plfeature.Features) (fwk.Plugin, error), claim func(shape.Scenario) (*resourceapi.ResourceClaim, error)) (*simulation, shape.Scenario) {
	t.Helper()
	metrics.Register()
	var scenario shape.Scenario
	for _, one := range shape.Scenarios() {
		if one.Name == "ring-12-4" {
			scenario = one
		}
	}
	asks, err := claim(scenario)
	require.NoError(t, err)
	asks.Namespace, asks.Name, asks.UID = "default", "four", "four"
	s := &simulation{lists: &lists{
		claims: map[string]*resourceapi.ResourceClaim{"default/four": asks}, pending: map[types.UID]*resourceapi.ResourceClaim{}, classes: scenario.DeviceClasses(),
	}}
	s.pod = &v1.Pod{Spec: v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{{Name: "four", ResourceClaimName: ptr.To("four")}}}}
	s.pod.Namespace, s.pod.Name, s.pod.UID = "default", "asks", "asks"
	features := plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	registry := frameworkruntime.Registry{queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New, name: frameworkruntime.FactoryAdapter(features, factory)}
	profile := &config.KubeSchedulerProfile{SchedulerName: "simulation", Plugins: &config.Plugins{
		QueueSort: config.PluginSet{Enabled: []config.Plugin{{Name: queuesort.Name}}}, Bind: config.PluginSet{Enabled: []config.Plugin{{Name: defaultbinder.Name}}},
		MultiPoint: config.PluginSet{Enabled: []config.Plugin{{Name: name}}},
	}}
	if name == dynamicresources.Name {
		// A configuration that is loaded has them.
		profile.PluginConfig = []config.PluginConfig{{Name: name, Args: &config.DynamicResourcesArgs{FilterTimeout: &metav1.Duration{Duration: 7 * time.Second}}}}
	}
	s.framework, err = frameworkruntime.NewFramework(t.Context(), registry, profile,
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(fake.NewClientset(), 0)),
		frameworkruntime.WithSnapshotSharedLister(cache.NewEmptySnapshot()), frameworkruntime.WithSharedDRAManager(s.lists))
	require.NoError(t, err)
	return s, scenario
}

// try has a node with devices, of which some are in use, simulated and the pod tried on it. It returns the devices that the pod would get.
func (s *simulation) try(t testing.TB, scenario shape.Scenario, node string, inUse shape.Set) (devices []string, status *fwk.Status) {
	t.Helper()
	made, err := scenario.ResourceSlices(node)
	require.NoError(t, err)
	before := s.slices
	s.slices = append(before[:len(before):len(before)], made...)
	defer func() { s.slices = before }()
	used := &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}}}
	for _, slice := range made {
		for i, d := range slice.Spec.Devices {
			if inUse.Has(i) {
				used.Status.Allocation.Devices.Results = append(used.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: d.Name})
			}
		}
	}
	s.pending["used"] = used
	info := framework.NewNodeInfo()
	info.SetNode(&v1.Node{})
	info.Node().Name = node
	state := framework.NewCycleState()
	if _, status, _ := s.framework.RunPreFilterPlugins(t.Context(), state, s.pod); !status.IsSuccess() {
		return nil, status
	}
	if status := s.framework.RunFilterPlugins(t.Context(), state, s.pod, info); !status.IsSuccess() {
		return nil, status
	}
	if status := s.framework.RunReservePluginsReserve(t.Context(), state, s.pod, node); !status.IsSuccess() {
		return nil, status
	}
	for _, d := range s.pending["four"].Status.Allocation.Devices.Results {
		devices = append(devices, d.Device)
	}
	s.framework.RunReservePluginsUnreserve(t.Context(), state, s.pod, node)
	return devices, nil
}

// TestSimulation asks the same pod for a hundred nodes that do not exist.
func TestSimulation(t *testing.T) {
	goroutines := [2]int{}
	s, ring := newSimulation(t, plugin.Name, func(ctx context.Context, args apiruntime.Object, handle fwk.Handle, features plfeature.Features) (fwk.Plugin, error) {
		goroutines[0] = runtime.NumGoroutine()
		pl, err := plugin.New(ctx, args, handle, features)
		goroutines[1] = runtime.NumGoroutine()
		return pl, err
	}, shape.Scenario.Claim)
	require.LessOrEqual(t, goroutines[1], goroutines[0], "New starts none")
	before := runtime.NumGoroutine()
	for i := range 100 {
		node := fmt.Sprint("template-", i)
		devices, status := s.try(t, ring, node, shape.Drawn("xx....xxxxxx"))
		require.True(t, status.IsSuccess(), "%v", status)
		require.True(t, ring.Holds(devices), "%v", devices)
		_, status = s.try(t, ring, node, shape.Drawn("..x..x..x..x"))
		require.True(t, status.IsRejected(), "%v", status)
		require.NotContains(t, s.pending, types.UID("four"), "taken back")
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// TestInPlaceOfUpstreams: the plugin takes upstream's arguments, and stands under its name.
func TestInPlaceOfUpstreams(t *testing.T) {
	s, ring := newSimulation(t, dynamicresources.Name, plugin.New, shape.Scenario.Claim)
	devices, status := s.try(t, ring, "node", shape.Drawn("..x....x..xx"))
	require.True(t, status.IsSuccess(), "%v", status)
	require.True(t, ring.Holds(devices), "%v", devices)
}

// BenchmarkSimulation is a pod on a node that does not exist, with upstream's plugin and with ours.
func BenchmarkSimulation(b *testing.B) {
	plain := func(s shape.Scenario) (*resourceapi.ResourceClaim, error) { return s.PlainClaim(), nil }
	for _, one := range []struct {
		name    string
		factory func(context.Context, apiruntime.Object, fwk.Handle, plfeature.Features) (fwk.Plugin, error)
		claim   func(shape.Scenario) (*resourceapi.ResourceClaim, error)
	}{{"upstream/any four", dynamicresources.New, plain}, {"celset/any four", plugin.New, plain}, {"celset/ring", plugin.New, shape.Scenario.Claim}} {
		b.Run(one.name, func(b *testing.B) {
			s, ring := newSimulation(b, dynamicresources.Name, one.factory, one.claim)
			for i := 0; b.Loop(); i++ {
				_, status := s.try(b, ring, fmt.Sprint("template-", i), 0)
				require.True(b, status.IsSuccess(), "%v", status)
			}
		})
	}
}
