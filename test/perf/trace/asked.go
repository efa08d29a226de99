// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// features are those that are on by default in Kubernetes 1.37.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
	FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true,
}

// asked has the allocator choose, as a scheduler has it: one for each decision, with a cache for all.
type asked struct {
	machine   *Machine
	nodes     []*v1.Node
	slices    []*resourceapi.ResourceSlice
	class     *resourceapi.DeviceClass
	claims    map[int]*resourceapi.ResourceClaim
	places    map[string]int
	selectors *dracel.Cache
	options   []allocator.Option
}

// List implements [structured.DeviceClassLister].
func (a *asked) List() ([]*resourceapi.DeviceClass, error) {
	return []*resourceapi.DeviceClass{a.class}, nil
}

// Get implements [structured.DeviceClassLister].
func (a *asked) Get(name string) (*resourceapi.DeviceClass, error) {
	if name != className {
		return nil, fmt.Errorf("no DeviceClass %q", name)
	}
	return a.class, nil
}

// newAsked has so many nodes. The preferences are those of the class.
func newAsked(machine *Machine, nodes int, preferences []v1alpha1.CELDevicePreference, options ...allocator.Option) (*asked, error) {
	class, err := machine.class(preferences)
	if err != nil {
		return nil, err
	}
	a := &asked{
		machine: machine, class: class, claims: map[int]*resourceapi.ResourceClaim{}, places: map[string]int{},
		selectors: dracel.NewCache(10, dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}),
		options:   append(options, allocator.WithCache(allocator.NewCache())),
	}
	for i := range nodes {
		name := fmt.Sprintf("node-%03d", i)
		published, err := machine.Topology.ResourceSlices(name)
		if err != nil {
			return nil, err
		}
		a.nodes = append(a.nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		a.slices = append(a.slices, published...)
	}
	for size := range machine.sets {
		a.claims[size] = machine.claim(size)
	}
	for i, d := range machine.Topology.Devices {
		a.places[d.Name] = i
	}
	return a, nil
}

// inUse are the devices of nodes that are not free.
func (a *asked) inUse(free []Set) sets.Set[structured.DeviceID] {
	inUse := sets.New[structured.DeviceID]()
	for node := range free {
		for i := range (a.machine.all() &^ free[node]).members() {
			inUse.Insert(structured.MakeDeviceID(className, a.nodes[node].Name, a.machine.Topology.Devices[i].Name))
		}
	}
	return inUse
}

// open is an [opener].
func (a *asked) open(free []Set) (chooser, error) {
	ctx := context.Background()
	allocator, err := allocator.NewAllocator(ctx, features, structured.AllocatedState{AllocatedDevices: a.inUse(free)}, a, a.slices, a.selectors, a.options...)
	if err != nil {
		return nil, err
	}
	return func(node int, _ Set, size int) (choice, error) {
		results, details, err := allocator.AllocateWithDetails(ctx, a.nodes[node], []*resourceapi.ResourceClaim{a.claims[size]})
		if err != nil || len(results) == 0 {
			return choice{}, err
		}
		var c choice
		for _, result := range results[0].Devices.Results {
			c.set |= Set(1) << a.places[result.Device]
		}
		for _, value := range details.Preferences {
			c.values = append(c.values, value.Value)
		}
		return c, nil
	}, nil
}

// alone asks for a node as if there were no other, which is enough where nodes are alike and
// answers are remembered.
func (a *asked) alone(_ int, free Set, size int) (choice, error) {
	choose, err := a.open([]Set{free})
	if err != nil {
		return choice{}, err
	}
	return choose(0, free, size)
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

// wholeLast prefers, of sets that are as good otherwise, those that break the fewest others.
func wholeLast() v1alpha1.CELDevicePreference {
	return v1alpha1.CELDevicePreference{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.PreferenceKind},
		Name:     "whole",
		Policy:   v1alpha1.PolicyKeepWhole,
	}
}
