// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/internal/env"
)

// className is the name of the DeviceClass and of the driver on all machines.
const className = "mla.example.com"

// A Machine is a type of node. Its DeviceClass defines a constraint for each size of claims (number of devices) except 1.
type Machine struct {
	Name        string
	topology    topology.Topology
	constraints []constraint
	// gpus are the machine's GPUs in the types of NVIDIA's go-gpuallocator. If the devices are not GPUs, it is nil.
	gpus []*gpuallocator.Device
	// sets maps a size to all sets that satisfy the constraint, in the allocator's search order.
	sets map[int][]shape.Set
}

// A constraint is the constraint for claims of one size, as a CEL expression and as a Go function.
type constraint struct {
	size             int
	name, expression string
	holds            func(t topology.Topology, names []string) bool
}

// Machines returns the machines on which traces are replayed. It creates them at its first call, because enumerating their sets
// takes long.
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

// made returns the topology, and panics on an error. The parameters are constants.
func made(t topology.Topology, err error) topology.Topology {
	if err != nil {
		panic(err)
	}
	return t
}

// attribute returns a CEL expression for an attribute of the device d.
func attribute(d, name string) string {
	return fmt.Sprintf("%s.attributes['%s'].%s", d, className, name)
}

// pairs returns constraints that require both devices of each pair.
func pairs() []constraint {
	expression := fmt.Sprintf("devices.all(d, devices.exists_one(o, d != o && %s == %s))", attribute("d", "bridge"), attribute("o", "bridge"))
	return []constraint{
		{2, "pairs", expression, wiring.WholePairs},
		{4, "pairs", expression, wiring.WholePairs},
		{8, "pairs", expression, wiring.WholePairs},
	}
}

// arcs returns constraints that require consecutive devices of a ring: for exactly one device, the next device is not in the
// set. The set of all eight devices is allowed, too.
func arcs() []constraint {
	expression := fmt.Sprintf("size(devices) == 8 || devices.exists_one(d, !devices.exists(o, %s == (%s + 1) %% 8))", attribute("o", "index"), attribute("d", "index"))
	return []constraint{
		{2, "arc", expression, wiring.Contiguous},
		{4, "arc", expression, wiring.Contiguous},
		{8, "arc", expression, wiring.Contiguous},
	}
}

// blocks returns constraints that require rectangles: the bounding box of the devices has exactly as many places as there are
// devices.
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
			return wiring.IsBlock(t, names, rows, cols) || wiring.IsBlock(t, names, cols, rows)
		}}
	}
	return []constraint{block("block1x2", 1, 2), block("block2x2", 2, 2), block("block2x4", 2, 4)}
}

// linked returns constraints that require a link between each two devices. The set of all eight devices is always allowed.
func linked() []constraint {
	expression := fmt.Sprintf("size(devices) == 8 || devices.all(d, devices.all(o, d == o || %s in %s.split(',')))", attribute("o", "id"), attribute("d", "peers"))
	holds := func(t topology.Topology, names []string) bool { return len(names) == 8 || wiring.IsClique(t, names) }
	return []constraint{{2, "linked", expression, holds}, {4, "linked", expression, holds}, {8, "linked", expression, holds}}
}

// enumerate finds all sets that satisfy each constraint, with the Go functions.
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

// subsets returns all subsets with size elements, in the allocator's order: sorted by the first device, then by the second, and
// so on.
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

// class returns the DeviceClass of the machine. It selects the devices and defines the constraints.
func (m *Machine) class() *resourceapi.DeviceClass {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: className}, Spec: env.ClassOf(className)}
	for i, c := range m.constraints {
		if i == 0 || c.name != m.constraints[i-1].name { // sizes with the same expression share a definition
			class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: env.Definition(c.name, c.expression)})
		}
	}
	return class
}

// claim returns a claim that requests size devices. It refers to the constraint for this size, if there is one.
func (m *Machine) claim(size int) *resourceapi.ResourceClaim {
	parts := []env.Part{env.Request("mla", className, int64(size))}
	for _, c := range m.constraints {
		if c.size == size {
			parts = append(parts, env.Refer(c.name, "mla"))
		}
	}
	claim := env.Claim(fmt.Sprintf("%d-devices", size), parts...)
	claim.Namespace = "default"
	return claim
}

// features are the features that are on by default in Kubernetes 1.37.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
	FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true,
}

// classes is a lister of a single class.
type classes struct{ *resourceapi.DeviceClass }

// List implements [structured.DeviceClassLister].
func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return []*resourceapi.DeviceClass{c.DeviceClass}, nil
}

// Get implements [structured.DeviceClassLister].
func (c classes) Get(string) (*resourceapi.DeviceClass, error) { return c.DeviceClass, nil }

// asked returns a chooser that runs celset's allocator on a node. Like a scheduler, it creates a new allocator for each
// decision, and all allocators share a cache.
func (m *Machine) asked(options ...allocator.Option) (chooser, error) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	published, err := m.topology.ResourceSlices(node.Name)
	if err != nil {
		return nil, err
	}
	if len(published) != 1 {
		return nil, errors.New("the devices of a node are not one slice")
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
		a, err := allocator.NewAllocator(ctx, features, structured.AllocatedState{AllocatedDevices: inUse}, classes{m.class()}, published, selectors, options...)
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

// keepWhole returns allocator options that turn on the preference KeepWhole, for the sizes of the trace's claims.
func (m *Machine) keepWhole() []allocator.Option {
	var shapes []allocator.Shape
	for _, c := range m.constraints {
		shapes = append(shapes, allocator.Shape{Class: className, Constraint: c.name, Count: c.size})
	}
	return []allocator.Option{allocator.WithDefaultPreference(v1alpha1.PolicyKeepWhole), allocator.WithShapes(shapes)}
}

// bestEffort runs the best-effort policy of NVIDIA's go-gpuallocator, which its device plugin uses. The policy divides the free
// GPUs of a node into sets of the requested size, so that the sum of the link scores of all sets is as large as possible.
// Remaining GPUs form a set, too. Then it chooses the set with the best score. If one GPU is requested, it chooses the first.
// The policy does not know constraints, so bestEffort leaves out sets that violate the constraint.
func (m *Machine) bestEffort(free shape.Set, size int) (choice, error) {
	available := make([]*gpuallocator.Device, 0, free.Len())
	for i := range free.All() {
		available = append(available, m.gpus[i])
	}
	var chosen choice
	for _, gpu := range gpuallocator.NewBestEffortPolicy().Allocate(available, nil, size) {
		if gpu == nil {
			return choice{}, fmt.Errorf("of %b the policy chose what is left over from sets of %d", free, size)
		}
		chosen.set |= 1 << gpu.Index
	}
	if !slices.Contains(m.sets[size], chosen.set) {
		return choice{}, nil
	}
	return chosen, nil
}

// The kinds of links between GPUs. go-gpuallocator, which doesn't export their names, scores them with 10, 30, 50, 100 and 200.
var (
	ofTwoCPUs   = gpuallocator.P2PLink{Type: 1}
	atOneCPU    = gpuallocator.P2PLink{Type: 3}
	atOneSwitch = gpuallocator.P2PLink{Type: 5}
	nvLink      = [...]gpuallocator.P2PLink{1: {Type: 7}, 2: {Type: 8}}
)

const gpusPerSwitch, gpusPerCPU = 2, 4

// nvLinks[i][j] is the number of NVLinks between two GPUs of a DGX-1 with eight V100, as "nvidia-smi topo -m" prints them.
var nvLinks = [8][8]int{
	{0, 1, 1, 2, 2, 0, 0, 0},
	{1, 0, 2, 1, 0, 2, 0, 0},
	{1, 2, 0, 2, 0, 0, 1, 0},
	{2, 1, 2, 0, 0, 0, 0, 1},
	{2, 0, 0, 0, 0, 1, 1, 2},
	{0, 2, 0, 0, 1, 0, 2, 1},
	{0, 0, 1, 0, 1, 2, 0, 2},
	{0, 0, 0, 1, 2, 1, 2, 0},
}

// cubeMeshGPUs returns the GPUs of the hybrid cube mesh in the types of NVIDIA's go-gpuallocator.
func cubeMeshGPUs() []*gpuallocator.Device {
	gpus := make([]*gpuallocator.Device, len(nvLinks))
	for i := range gpus {
		gpus[i] = &gpuallocator.Device{Index: i, Links: map[int][]gpuallocator.P2PLink{}}
	}
	for i, gpu := range gpus {
		for j, n := range nvLinks[i] {
			if i == j {
				continue
			}
			link := ofTwoCPUs
			switch {
			case i/gpusPerSwitch == j/gpusPerSwitch:
				link = atOneSwitch
			case i/gpusPerCPU == j/gpusPerCPU:
				link = atOneCPU
			}
			link.GPU = gpus[j]
			gpu.Links[j] = append(gpu.Links[j], link)
			if n > 0 {
				link.Type = nvLink[n].Type
				gpu.Links[j] = append(gpu.Links[j], link)
			}
		}
	}
	return gpus
}
