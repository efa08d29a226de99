// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/featuregate"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/incremental"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/plugin"
)

// The functions below are the code that a program needs to embed celset, as the documentation shows it. TestSeams runs them.

func inRegistry(gates featuregate.FeatureGate) frameworkruntime.Registry {
	registry := plugins.NewInTreeRegistry()
	features := plfeature.NewSchedulerFeaturesFromGates(gates)
	registry[dynamicresources.Name] = frameworkruntime.FactoryAdapter(features, plugin.New)
	return registry
}

func byCall(ctx context.Context, args runtime.Object, handle fwk.Handle, features plfeature.Features) (*plugin.DynamicResourcesCEL, error) {
	made, err := plugin.New(ctx, args, handle, features)
	if err != nil {
		return nil, err
	}
	return made.(*plugin.DynamicResourcesCEL), nil
}

func allocate(ctx context.Context, features structured.Features, state structured.AllocatedState, classes structured.DeviceClassLister,
	slices []*resourceapi.ResourceSlice, celCache *dracel.Cache, node *v1.Node, claims []*resourceapi.ResourceClaim, options ...allocator.Option) ([]resourceapi.AllocationResult, error) {
	a, err := allocator.NewAllocator(ctx, features, state, classes, slices, celCache, options...)
	if err != nil {
		return nil, err
	}
	return a.Allocate(ctx, node, claims)
}

// A setConstraint is a constraint in the form that the search in TestSeams calls.
type setConstraint struct {
	*incremental.Set
	positions map[structured.DeviceID]int
}

func (c setConstraint) Add(request string, id structured.DeviceID) bool {
	return c.Set.Add(request, c.positions[id])
}

func (c setConstraint) Remove(request string, id structured.DeviceID) {
	c.Set.Remove(request, c.positions[id])
}

func constraintsOf(ctx context.Context, environment *device.Environment, claim *resourceapi.ResourceClaim, classes structured.DeviceClassLister,
	devices []incremental.Device, positions map[structured.DeviceID]int, requests []incremental.Request) (all []setConstraint, err error) {
	constraints, err := incremental.Constraints(ctx, environment, claim, classes)
	if err != nil {
		return nil, err
	}
	for _, c := range constraints {
		all = append(all, setConstraint{c.Over(ctx, devices, requests, cel.NewBudget(1<<30)), positions})
	}
	return all, nil
}
