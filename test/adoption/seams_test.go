// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/incremental"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/corpus"
	"github.com/celset/celset/internal/testing/simulation"
)

// asks holds a typical claim, and the classes and devices of a node that has a set for it.
type asks struct {
	corpus.Expression
	claim   *resourceapi.ResourceClaim
	classes []*resourceapi.DeviceClass
	slices  []*resourceapi.ResourceSlice
}

const node = "node"

func newAsks(e corpus.Expression) *asks {
	a := &asks{Expression: e, claim: &resourceapi.ResourceClaim{}}
	a.claim.Name, a.claim.Namespace, a.claim.UID = "claim", "default", "claim"
	spec := &a.claim.Spec.Devices
	for i, r := range e.Requests {
		spec.Requests = append(spec.Requests, resourceapi.DeviceRequest{Name: fmt.Sprint("r", i), Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: r.Driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(r.Count),
		}})
	}
	spec.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/set"))}}
	spec.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver:     "celset.dev",
		Parameters: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "set", "expression": %q}`, e.Text)},
	}}}}
	for _, driver := range e.Hardware.Drivers() {
		class := &resourceapi.DeviceClass{Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}}}}}
		class.Name = driver
		a.classes = append(a.classes, class)
		slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: driver, NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1}}}
		slice.Name = driver
		for _, d := range e.Hardware.Devices() {
			if d.Driver == driver {
				slice.Spec.Devices = append(slice.Spec.Devices, d.Device)
			}
		}
		a.slices = append(a.slices, slice)
	}
	return a
}

// Get and List implement structured.DeviceClassLister.
func (a *asks) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range a.classes {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

func (a *asks) List() ([]*resourceapi.DeviceClass, error) { return a.classes, nil }

// called returns the devices from a direct call of the allocator, in place of structured.NewAllocator. KAI and Kueue call it
// like this.
func (a *asks) called(ctx context.Context) (devices []string, err error) {
	n := &v1.Node{}
	n.Name = node
	results, err := allocate(ctx, structured.Features{}, structured.AllocatedState{}, a, a.slices, dracel.NewCache(10, dracel.Features{}), n, []*resourceapi.ResourceClaim{a.claim})
	if err != nil || results == nil {
		return nil, err
	}
	for _, d := range results[0].Devices.Results {
		devices = append(devices, d.Driver+"/"+d.Device)
	}
	return devices, nil
}

// simulated returns the devices from the plugin in a scheduling framework with all other plugins. Autoscalers embed it like
// this.
func (a *asks) simulated(ctx context.Context) ([]string, error) {
	s, err := simulation.Of(ctx, inRegistry(utilfeature.DefaultFeatureGate), a.claim, a.classes...)
	if err != nil {
		return nil, err
	}
	return a.tried(ctx, s)
}

// made returns the devices from a plugin that is created by its constructor, without a registry. Volcano embeds it like this.
func (a *asks) made(ctx context.Context) ([]string, error) {
	factory := func(ctx context.Context, args runtime.Object, handle fwk.Handle, features plfeature.Features) (fwk.Plugin, error) {
		return byCall(ctx, args, handle, features)
	}
	s, err := simulation.New(ctx, dynamicresources.Name, factory, plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate), a.claim, a.classes...)
	if err != nil {
		return nil, err
	}
	return a.tried(ctx, s)
}

func (a *asks) tried(ctx context.Context, s *simulation.Simulation) ([]string, error) {
	devices, status := s.Try(ctx, node, a.slices, func(string, int) bool { return false })
	if !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	return devices, nil
}

// searched returns the devices from a search that adds one device after the other and checks the constraints each time.
// Karpenter searches like this.
func (a *asks) searched(ctx context.Context, environment *device.Environment) ([]string, error) {
	var devices []incremental.Device
	positions := map[structured.DeviceID]int{}
	var ids []structured.DeviceID
	for _, slice := range a.slices {
		for i := range slice.Spec.Devices {
			id := structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name)
			ids, positions[id] = append(ids, id), len(devices)
			devices = append(devices, incremental.Device{Driver: slice.Spec.Driver, Device: &slice.Spec.Devices[i]})
		}
	}
	var requests []incremental.Request
	for _, r := range a.claim.Spec.Devices.Requests {
		requests = append(requests, incremental.Request{Name: r.Name, Count: int(r.Exactly.Count)})
	}
	constraints, err := constraintsOf(ctx, environment, a.claim, a, devices, positions, requests)
	if err != nil {
		return nil, err
	}
	c := constraints[0]
	taken := make([][]int, len(requests))
	var visit func(request, from int) bool
	visit = func(request, from int) bool {
		if request < len(requests) && len(taken[request]) == requests[request].Count {
			request, from = request+1, 0
		}
		if request == len(requests) {
			return true
		}
		for i := from; i < len(devices) && c.Err() == nil; i++ {
			if devices[i].Driver != a.Requests[request].Driver || !c.Add(requests[request].Name, ids[i]) {
				continue
			}
			taken[request] = append(taken[request], i)
			if visit(request, i+1) {
				return true
			}
			taken[request] = taken[request][:len(taken[request])-1]
			c.Remove(requests[request].Name, ids[i])
		}
		return false
	}
	if !visit(0, 0) {
		return nil, c.Err()
	}
	var found []string
	for _, i := range slices.Concat(taken...) {
		found = append(found, devices[i].Driver+"/"+devices[i].Name)
	}
	return found, nil
}

// TestSeams checks that a claim gets the same devices, whichever way of embedding celset a program uses.
func TestSeams(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	found, none := 0, 0
	all := slices.Concat(corpus.Expressions(), corpus.Asked())
	for i := 0; i < len(all); i += cases.Of(6, 1) {
		e := all[i]
		t.Run(e.Name, func(t *testing.T) {
			a := newAsks(e)
			want, err := a.called(t.Context())
			simulated, refusal := a.simulated(t.Context())
			if budget, over := errors.AsType[*allocator.BudgetError](err); over {
				require.ErrorContains(t, refusal, string(budget.Unit))
				t.Log(err)
				return
			}
			require.True(t, err == nil || errors.Is(err, structured.ErrFailedAllocationOnNode), "%v", err)
			require.NoError(t, refusal)
			require.Equal(t, want, simulated, "in the framework of an autoscaler")
			made, err := a.made(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, made, "made by a call")
			searched, err := a.searched(t.Context(), environment)
			require.NoError(t, err)
			require.Equal(t, want, searched, "by a search of its own")
			if want != nil {
				found++
			} else {
				none++
			}
		})
	}
	t.Logf("%d claims get devices, %d don't", found, none)
	require.Greater(t, found, len(all)/8)
}
