// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/shape"
)

// features are those that are on by default in Kubernetes 1.37.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
	FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true,
}

// classes are the one that there is.
type classes struct{ *resourceapi.DeviceClass }

// List implements [structured.DeviceClassLister].
func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return []*resourceapi.DeviceClass{c.DeviceClass}, nil
}

// Get implements [structured.DeviceClassLister].
func (c classes) Get(string) (*resourceapi.DeviceClass, error) { return c.DeviceClass, nil }

// asked has the allocator choose on a node, as a scheduler has it: one for each decision, with a cache
// for all.
func (m *Machine) asked(options ...allocator.Option) (chooser, error) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	published, err := m.topology.ResourceSlices(node.Name)
	if err != nil {
		return nil, err
	}
	if len(published) != 1 {
		return nil, errors.New("the devices of a node are not one slice")
	}
	class, err := m.class()
	if err != nil {
		return nil, err
	}
	places := map[string]int{}
	for i, d := range m.topology.Devices {
		places[d.Name] = i
	}
	selectors := dracel.NewCache(10, dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	options = append(options, allocator.WithCache(allocator.NewCache()))
	return func(free shape.Set, size int) (choice, error) {
		inUse := sets.New[structured.DeviceID]()
		for i := range (m.all() &^ free).All() {
			inUse.Insert(structured.MakeDeviceID(className, published[0].Spec.Pool.Name, m.topology.Devices[i].Name))
		}
		ctx := context.Background()
		a, err := allocator.NewAllocator(ctx, features, structured.AllocatedState{AllocatedDevices: inUse}, classes{class}, published, selectors, options...)
		if err != nil {
			return choice{}, err
		}
		results, details, err := a.AllocateWithDetails(ctx, node, []*resourceapi.ResourceClaim{m.claim(size)})
		if err != nil || len(results) == 0 {
			return choice{}, err
		}
		var c choice
		for _, result := range results[0].Devices.Results {
			c.set |= shape.Set(1) << places[result.Device]
		}
		for _, value := range details.Preferences {
			c.values = append(c.values, value.Value)
		}
		return c, nil
	}, nil
}

// keepWhole are the options with which sets are kept whole: the shapes are those that the claims of
// the trace have.
func (m *Machine) keepWhole() []allocator.Option {
	var shapes []allocator.Shape
	for _, c := range m.constraints {
		shapes = append(shapes, allocator.Shape{Class: className, Constraint: c.name, Count: c.size})
	}
	return []allocator.Option{allocator.WithDefaultPreference(v1alpha1.PolicyKeepWhole), allocator.WithShapes(shapes)}
}
