// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

// className is the DeviceClass of all machines, and the name of their driver.
const className = "mla.example.com"

// Machine is a kind of node with its claims: the constraints that its DeviceClass defines, one for
// each size of claims but 1.
type Machine struct {
	Name        string
	topology    topology.Topology
	constraints []constraint
	// gpus are the devices as NVIDIA's policies know them, nil if they are none.
	gpus []*gpuallocator.Device
	// sets has all sets of a size that satisfy the constraint, in the order of an allocator.
	sets map[int][]shape.Set
}

// constraint is the constraint for claims of a size, and the same in Go.
type constraint struct {
	size             int
	name, expression string
	holds            func(t topology.Topology, names []string) bool
}

// Machines are those that traces are replayed on. They are made once: all sets of their devices are looked at.
var Machines = sync.OnceValue(func() []*Machine {
	family := topology.Family{Driver: className, Prefix: "mla"}
	machines := []*Machine{
		{Name: "pairs", topology: made(topology.NewBridgePairs(family, 8)), constraints: pairs()},
		{Name: "ring", topology: made(topology.NewRing(family, 8)), constraints: arcs()},
		{Name: "mesh", topology: made(topology.NewMesh(family, 4, 4)), constraints: blocks()},
		{Name: "cube-mesh", topology: made(topology.NewHybridCubeMesh(family, topology.PeersAsString)), constraints: linked(), gpus: cubeMeshGPUs()},
	}
	for _, m := range machines {
		m.enumerate()
	}
	return machines
})

// made unwraps a topology whose parameters are constants.
func made(t topology.Topology, err error) topology.Topology {
	if err != nil {
		panic(err)
	}
	return t
}

// attribute is that of a device d.
func attribute(d, name string) string {
	return fmt.Sprintf("%s.attributes['%s'].%s", d, className, name)
}

// pairs: each device has its partner with it.
func pairs() []constraint {
	expression := fmt.Sprintf("devices.all(d, devices.exists_one(o, d != o && %s == %s))", attribute("d", "bridge"), attribute("o", "bridge"))
	return []constraint{
		{2, "pairs", expression, topology.Topology.WholePairs},
		{4, "pairs", expression, topology.Topology.WholePairs},
		{8, "pairs", expression, topology.Topology.WholePairs},
	}
}

// arcs: of a stretch of a ring, all devices but the last have their successor with them. Of all eight
// every one has.
func arcs() []constraint {
	expression := fmt.Sprintf("size(devices) == 8 || devices.exists_one(d, !devices.exists(o, %s == (%s + 1) %% 8))", attribute("o", "index"), attribute("d", "index"))
	return []constraint{
		{2, "arc", expression, topology.Topology.Contiguous},
		{4, "arc", expression, topology.Topology.Contiguous},
		{8, "arc", expression, topology.Topology.Contiguous},
	}
}

// blocks: the box around the devices has as many places as there are devices.
func blocks() []constraint {
	side := func(name string, length int) string {
		values := fmt.Sprintf("devices.map(d, %s)", attribute("d", name))
		return fmt.Sprintf("%s.max() - %s.min() == %d", values, values, length-1)
	}
	block := func(name string, rows, cols int) constraint {
		expression := side("row", rows) + " && " + side("col", cols)
		if rows != cols {
			expression += " || " + side("row", cols) + " && " + side("col", rows)
		}
		return constraint{rows * cols, name, expression, func(t topology.Topology, names []string) bool {
			return t.IsBlock(names, rows, cols) || t.IsBlock(names, cols, rows)
		}}
	}
	return []constraint{block("block1x2", 1, 2), block("block2x2", 2, 2), block("block2x4", 2, 4)}
}

// linked: all are linked to all. Eight are all that there are.
func linked() []constraint {
	expression := fmt.Sprintf("size(devices) == 8 || devices.all(d, devices.all(o, d == o || %s in %s.split(',')))", attribute("o", "id"), attribute("d", "peers"))
	holds := func(t topology.Topology, names []string) bool { return len(names) == 8 || t.IsClique(names) }
	return []constraint{{2, "linked", expression, holds}, {4, "linked", expression, holds}, {8, "linked", expression, holds}}
}

// enumerate finds all sets that satisfy the constraints, with the predicates of the topology.
func (m *Machine) enumerate() {
	m.sets = map[int][]shape.Set{1: slices.Collect(subsets(m.all(), 1))}
	for _, c := range m.constraints {
		for set := range subsets(m.all(), c.size) {
			if c.holds(m.topology, m.names(set)) {
				m.sets[c.size] = append(m.sets[c.size], set)
			}
		}
	}
}

func (m *Machine) all() shape.Set { return shape.Set(1)<<len(m.topology.Devices) - 1 }

func (m *Machine) names(set shape.Set) []string {
	var names []string
	for i := range set.All() {
		names = append(names, m.topology.Devices[i].Name)
	}
	return names
}

// subsets are those of a size, in the order of an allocator: by the first device, by the second.
func subsets(of shape.Set, size int) iter.Seq[shape.Set] {
	return func(yield func(shape.Set) bool) { extend(0, of, size, yield) }
}

func extend(chosen, rest shape.Set, size int, yield func(shape.Set) bool) bool {
	if size == 0 {
		return yield(chosen)
	}
	for rest.Len() >= size {
		next := rest & -rest
		rest &^= next
		if !extend(chosen|next, rest, size-1, yield) {
			return false
		}
	}
	return true
}

// class selects the devices, and defines the constraints.
func (m *Machine) class() (*resourceapi.DeviceClass, error) {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: className}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == '%s'", className)}}}
	for i, c := range m.constraints {
		if i > 0 && c.name == m.constraints[i-1].name {
			continue // one for all sizes
		}
		raw, err := json.Marshal(v1alpha1.CELDeviceConstraint{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
			Name:     c.name, Expression: c.expression,
		})
		if err != nil {
			return nil, err
		}
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw}},
		}})
	}
	return class, nil
}

// claim asks for so many devices, and refers to the constraint for that.
func (m *Machine) claim(size int) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%d-devices", size)}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "mla", Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: className, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(size),
	}}}
	for _, c := range m.constraints {
		if c.size == size {
			claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{
				Requests: []string{"mla"}, MatchAttribute: new(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + c.name)),
			}}
		}
	}
	return claim
}
