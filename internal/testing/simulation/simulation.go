// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation tries pods on simulated nodes, as an autoscaler does. It uses a scheduler framework with a plugin for
// devices. The framework has no client and reads lists in memory.
package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/ptr"
)

// Lists has the objects of a simulated cluster.
type Lists struct {
	// Claims maps "namespace/name" to a claim. pending maps the UID of a claim to its pending allocation.
	Claims  map[string]*resourceapi.ResourceClaim
	pending map[types.UID]*resourceapi.ResourceClaim
	Slices  []*resourceapi.ResourceSlice
	Classes []*resourceapi.DeviceClass
	// missing is the error that list calls return until the lists are set. It is nil afterwards.
	missing error
}

type (
	claims    struct{ *Lists }
	sliceList struct{ *Lists }
	classList struct{ *Lists }
)

// ResourceClaims implements [fwk.SharedDRAManager].
func (l *Lists) ResourceClaims() fwk.ResourceClaimTracker { return claims{l} }

// ResourceSlices implements [fwk.SharedDRAManager].
func (l *Lists) ResourceSlices() fwk.ResourceSliceLister { return sliceList{l} }

// DeviceClasses implements [fwk.SharedDRAManager].
func (l *Lists) DeviceClasses() fwk.DeviceClassLister { return classList{l} }

// DeviceClassResolver implements [fwk.SharedDRAManager].
func (l *Lists) DeviceClassResolver() fwk.DeviceClassResolver { return classList{l} }

func (classList) GetDeviceClass(v1.ResourceName) *resourceapi.DeviceClass { return nil }
func (c classList) List() ([]*resourceapi.DeviceClass, error)             { return c.Classes, c.missing }

func (c classList) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c.Classes {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, cmp.Or(c.missing, error(apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)))
}

func (s sliceList) ListWithDeviceTaintRules() ([]*resourceapi.ResourceSlice, error) {
	return s.Slices, nil
}

func (c claims) List() (all []*resourceapi.ResourceClaim, err error) {
	for _, claim := range c.Claims {
		all = append(all, claim)
	}
	return all, nil
}

func (c claims) Get(namespace, name string) (*resourceapi.ResourceClaim, error) {
	if claim := c.Claims[namespace+"/"+name]; claim != nil {
		return claim, nil
	}
	return nil, cmp.Or(c.missing, error(apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), name)))
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

// manager gets its lists only after the framework was created, because Cluster Autoscaler replaces the lists in each loop.
type manager struct{ *Lists }

// Simulation is a scheduler framework as an autoscaler creates it: without a client, and with lists in memory.
type Simulation struct {
	Lists     *Lists
	framework framework.Framework
	Pod       *v1.Pod
}

// Factory is a function that creates a plugin for devices.
type Factory = func(context.Context, runtime.Object, fwk.Handle, plfeature.Features) (fwk.Plugin, error)

// New returns a simulation for a pod with a claim. The profile has the plugin with the name, and factory creates this plugin. A
// plugin with the name of upstream's plugin gets upstream's arguments.
func New(ctx context.Context, name string, factory Factory, features plfeature.Features, claim *resourceapi.ResourceClaim, classes ...*resourceapi.DeviceClass) (*Simulation, error) {
	profile := &config.KubeSchedulerProfile{SchedulerName: "simulation", Plugins: &config.Plugins{
		QueueSort: config.PluginSet{Enabled: []config.Plugin{{Name: queuesort.Name}}}, Bind: config.PluginSet{Enabled: []config.Plugin{{Name: defaultbinder.Name}}},
		MultiPoint: config.PluginSet{Enabled: []config.Plugin{{Name: name}}},
	}}
	if name == dynamicresources.Name {
		// These are the arguments that the plugin gets from a loaded configuration.
		profile.PluginConfig = []config.PluginConfig{{Name: name, Args: &config.DynamicResourcesArgs{FilterTimeout: &metav1.Duration{Duration: 10 * time.Second}}}}
	}
	registry := frameworkruntime.Registry{queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New, name: frameworkruntime.FactoryAdapter(features, factory)}
	return of(ctx, registry, profile, claim, classes)
}

// Of returns a simulation with all plugins of the default profile. The registry creates the plugins.
func Of(ctx context.Context, registry frameworkruntime.Registry, claim *resourceapi.ResourceClaim, classes ...*resourceapi.DeviceClass) (*Simulation, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	return of(ctx, registry, &defaults.Profiles[0], claim, classes)
}

func of(ctx context.Context, registry frameworkruntime.Registry, profile *config.KubeSchedulerProfile, claim *resourceapi.ResourceClaim, classes []*resourceapi.DeviceClass) (*Simulation, error) {
	metrics.Register()
	claim = claim.DeepCopy()
	claim.Namespace, claim.Name, claim.UID = "default", "claim", "claim"
	s := &Simulation{Lists: &Lists{
		Claims: map[string]*resourceapi.ResourceClaim{"default/claim": claim}, pending: map[types.UID]*resourceapi.ResourceClaim{}, Classes: classes,
	}}
	s.Pod = &v1.Pod{Spec: v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{{Name: "claim", ResourceClaimName: ptr.To("claim")}}}}
	s.Pod.Namespace, s.Pod.Name, s.Pod.UID = "default", "asks", "asks"
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	var err error
	lists := &manager{&Lists{missing: errors.New("the lists are not there yet")}}
	s.framework, err = frameworkruntime.NewFramework(ctx, registry, profile, frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(cache.NewEmptySnapshot()), frameworkruntime.WithSharedDRAManager(lists),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())))
	lists.Lists = s.Lists
	return s, err
}

// Try simulates a node with slices and with devices in use, and tries to schedule the pod on the node. It returns the devices
// that the pod would get, and then releases these devices.
func (s *Simulation) Try(ctx context.Context, node string, slices []*resourceapi.ResourceSlice, inUse func(driver string, device int) bool) (devices []string, status *fwk.Status) {
	before := s.Lists.Slices
	s.Lists.Slices = append(before[:len(before):len(before)], slices...)
	defer func() { s.Lists.Slices = before }()
	used := &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}}}
	for _, slice := range slices {
		for i, d := range slice.Spec.Devices {
			if inUse(slice.Spec.Driver, i) {
				used.Status.Allocation.Devices.Results = append(used.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: d.Name})
			}
		}
	}
	s.Lists.pending["used"] = used
	info := framework.NewNodeInfo()
	info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourcePods: resource.MustParse("1")}}})
	state := framework.NewCycleState()
	if _, status, _ := s.framework.RunPreFilterPlugins(ctx, state, s.Pod); !status.IsSuccess() {
		return nil, status
	}
	if status := s.framework.RunFilterPlugins(ctx, state, s.Pod, info); !status.IsSuccess() {
		return nil, status
	}
	if status := s.framework.RunReservePluginsReserve(ctx, state, s.Pod, node); !status.IsSuccess() {
		return nil, status
	}
	for _, d := range s.Lists.pending["claim"].Status.Allocation.Devices.Results {
		devices = append(devices, d.Driver+"/"+d.Device)
	}
	s.framework.RunReservePluginsUnreserve(ctx, state, s.Pod, node)
	if s.Lists.pending["claim"] != nil {
		return devices, fwk.AsStatus(fmt.Errorf("the devices of the claim were not taken back"))
	}
	return devices, nil
}
