// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/topology"
)

// className is the DeviceClass of all machines, and the name of their driver.
const className = "mla.example.com"

// Machine is a kind of node with its claims: the constraints that its DeviceClass defines, one for
// each size of claims but 1.
type Machine struct {
	Name, Title string
	Topology    topology.Topology
	constraints []constraint
	// anySetWillDo has claims refer to no constraint.
	anySetWillDo bool
	// scores has for each two devices what their links are worth, nil where links are not counted.
	scores [][]int
	// sums has the sum of that for each set. links is about the same as an expression.
	sums  []int32
	links string
	// gpus are the devices as NVIDIA's policies know them.
	gpus []*gpuallocator.Device
	// sets has all sets of a size that satisfy the constraint, in the order of an allocator.
	sets map[int][]Set
	// whole has for each constraint the sets that satisfy it, whether or not claims refer to it.
	whole [][]Set
}

// constraint is the constraint for claims of a size, and the same in Go.
type constraint struct {
	size             int
	name, expression string
	holds            func(t topology.Topology, names []string) bool
}

// Machines are those that traces are replayed on.
func Machines() []Machine { return slices.Clone(machines()) }

// machines are made once: all sets of their devices are looked at.
var machines = sync.OnceValue(func() []Machine {
	family := topology.Family{Driver: className, Prefix: "mla"}
	machines := []Machine{
		{Name: "pairs", Title: "four bridged pairs", Topology: made(topology.NewBridgePairs(family, 8)), constraints: pairs()},
		{Name: "ring", Title: "a ring of 8", Topology: made(topology.NewRing(family, 8)), constraints: arcs()},
		{Name: "mesh", Title: "a mesh of 4 x 4", Topology: made(topology.NewMesh(family, 4, 4)), constraints: blocks()},
		{Name: "cube-mesh", Title: "a hybrid cube mesh of 8 GPUs", Topology: cubeMesh(family), constraints: linked(), scores: cubeMeshScores(), links: peerLinks()},
		{Name: "gpus", Title: "the same GPUs, any of which will do", Topology: cubeMesh(family), constraints: linked(), scores: cubeMeshScores(), links: peerLinks(), anySetWillDo: true},
	}
	for i := range machines {
		machines[i].enumerate()
	}
	return machines
})

// linkedMesh is the mesh, of which any devices will do, and those that are neighbours are best: for
// what best effort takes on nodes with more devices.
func linkedMesh() Machine {
	t := made(topology.NewMesh(topology.Family{Driver: className, Prefix: "mla"}, 4, 4))
	m := Machine{
		Name: "linked-mesh", Title: "a mesh of 4 x 4, any of which will do", Topology: t, constraints: blocks(),
		scores: neighbourScores(t), links: neighbourLinks(), anySetWillDo: true,
	}
	m.enumerate()
	return m
}

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
	m.sum()
	var err error
	if m.gpus, err = connected(m.scores); err != nil {
		panic(err)
	}
	m.sets = map[int][]Set{}
	for i := range m.Topology.Devices {
		m.sets[1] = append(m.sets[1], Set(1)<<i)
	}
	for _, c := range m.constraints {
		var whole []Set
		for set := range m.all().subsets(c.size) {
			holds := c.holds(m.Topology, m.names(set))
			if holds {
				whole = append(whole, set)
			}
			if holds || m.anySetWillDo {
				m.sets[c.size] = append(m.sets[c.size], set)
			}
		}
		m.whole = append(m.whole, whole)
	}
}

func (m *Machine) all() Set { return Set(1)<<len(m.Topology.Devices) - 1 }

func (m *Machine) names(set Set) []string {
	var names []string
	for i := range set.members() {
		names = append(names, m.Topology.Devices[i].Name)
	}
	return names
}

// fitting are the sets that satisfy the constraint and are free.
func (m *Machine) fitting(free Set, size int) []Set {
	var fitting []Set
	for _, set := range m.sets[size] {
		if free.has(set) {
			fitting = append(fitting, set)
		}
	}
	return fitting
}

// willDo tells whether a set satisfies the constraint for its size.
func (m *Machine) willDo(set Set) bool { return slices.Contains(m.sets[set.len()], set) }

// class selects the devices, and defines the constraints and preferences.
func (m *Machine) class(preferences []v1alpha1.CELDevicePreference) (*resourceapi.DeviceClass, error) {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: className}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == '%s'", className)}}}
	defined := map[string]bool{}
	for _, c := range m.constraints {
		if defined[c.name] {
			continue
		}
		defined[c.name] = true
		configuration, err := definition(v1alpha1.CELDeviceConstraint{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
			Name:     c.name, Expression: c.expression,
		})
		if err != nil {
			return nil, fmt.Errorf("machine %s: constraint %s: %w", m.Name, c.name, err)
		}
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: configuration})
	}
	for _, p := range preferences {
		configuration, err := definition(p)
		if err != nil {
			return nil, fmt.Errorf("machine %s: preference %s: %w", m.Name, p.Name, err)
		}
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: configuration})
	}
	return class, nil
}

// definition is a constraint or preference as a configuration.
func definition(parameters any) (resourceapi.DeviceConfiguration, error) {
	raw, err := json.Marshal(parameters)
	if err != nil {
		return resourceapi.DeviceConfiguration{}, err
	}
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}}, nil
}

// claim asks for so many devices, and refers to the constraint for that.
func (m *Machine) claim(size int) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%d-devices", size)}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "mla", Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: className, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(size),
	}}}
	for _, c := range m.constraints {
		if c.size == size && !m.anySetWillDo {
			claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{
				Requests: []string{"mla"}, MatchAttribute: new(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + c.name)),
			}}
		}
	}
	return claim
}
