// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/topology"
)

// Machine is a model of a machine.
type Machine struct {
	// Name is the name of the machine, a DNS label such as "aws-p4d".
	Name string
	// Title describes the machine in one line.
	Title string
	// devices has the devices of a node in the order of publication. If model is set, their values may have the placeholders
	// that [onNode] replaces.
	devices []topology.Device
	model   bool
	// classes has the DeviceClasses that the drivers install.
	classes []*resourceapi.DeviceClass
}

//go:embed *.yaml
var files embed.FS

// all reads the embedded models once. It panics on mistakes, because the tests of this package read all models.
var all = sync.OnceValue(func() []Machine {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err)
	}
	named := map[string]Machine{}
	var machines []Machine
	for _, entry := range entries {
		content, err := files.ReadFile(entry.Name())
		if err != nil {
			panic(err)
		}
		m, err := read(content)
		if err != nil {
			panic(fmt.Errorf("%s: %w", entry.Name(), err))
		}
		title, _, _ := strings.Cut(string(content), "\n")
		m.Name, m.Title, m.model = strings.TrimSuffix(entry.Name(), ".yaml"), strings.TrimPrefix(title, "# "), true
		named[m.Name] = m
		machines = append(machines, m)
	}
	link(named["aws-trn1"].devices)
	hgx, cpus := named["hgx-h100"], named["cpu-numa"]
	machines = append(machines, eachCPU(cpus), Machine{
		Name: "hgx-h100-cpu", Title: "hgx-h100 with its CPUs, a device for each NUMA node", model: true,
		devices: slices.Concat(hgx.devices, cpus.devices), classes: slices.Concat(hgx.classes, cpus.classes),
	})
	slices.SortFunc(machines, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
	return machines
})

// link links neighbouring devices of a 4x4 torus, according to their coordinates.
func link(devices []topology.Device) {
	const side = 4
	at := func(d topology.Device) (x, y int64, ok bool) {
		column, row := d.Attributes["topology_x"].IntValue, d.Attributes["topology_y"].IntValue
		if column == nil || row == nil {
			return 0, 0, false
		}
		return *column, *row, true
	}
	beside := func(a, b int64) bool { return (a-b+side)%side == 1 || (b-a+side)%side == 1 }
	for i := range devices {
		x, y, ok := at(devices[i])
		if !ok {
			continue
		}
		devices[i].Coordinates = topology.Coordinates{Row: int(y), Col: int(x)}
		for _, other := range devices {
			if ox, oy, ok := at(other); ok && (x == ox && beside(y, oy) || y == oy && beside(x, ox)) {
				devices[i].Neighbors = append(devices[i].Neighbors, other.Name)
			}
		}
	}
}

// All returns all machines, sorted by name.
func All() []Machine { return slices.Clone(all()) }

// Names returns the sorted names of all machines.
func Names() []string {
	var names []string
	for _, m := range All() {
		names = append(names, m.Name)
	}
	return names
}

// ByName returns the machine with the name. For an unknown name, the error lists all names.
func ByName(name string) (Machine, error) {
	for _, m := range All() {
		if m.Name == name {
			return m, nil
		}
	}
	return Machine{}, fmt.Errorf("machine %q: must be one of %s", name, strings.Join(Names(), ", "))
}

// Topology returns the devices on the node with the name. The result shares no memory with the results of other calls.
func (m Machine) Topology(node string) topology.Topology {
	t := topology.Topology{Kind: topology.Machine, Devices: slices.Clone(m.devices)}
	for i := range t.Devices {
		d := &t.Devices[i]
		d.Attributes, d.Neighbors = copied(d.Attributes), slices.Clone(d.Neighbors)
		if d.Capacity != nil {
			d.Capacity = (&resourceapi.Device{Capacity: d.Capacity}).DeepCopy().Capacity
		}
		for name, attribute := range d.Attributes {
			if m.model && attribute.StringValue != nil {
				attribute.StringValue = new(onNode(*attribute.StringValue, node))
				d.Attributes[name] = attribute
			}
		}
	}
	return t
}

func copied(attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	return (&resourceapi.Device{Attributes: attributes}).DeepCopy().Attributes
}

// Drivers returns the drivers of the devices, in the order of their first device.
func (m Machine) Drivers() []string {
	return m.Topology("").Drivers()
}

// ResourceSlices returns the slices that the drivers publish on a node, with one pool per driver
// ([topology.Topology.ResourceSlices]).
func (m Machine) ResourceSlices(node string) ([]*resourceapi.ResourceSlice, error) {
	return m.Topology(node).ResourceSlices(node)
}

// FeatureGates returns the sorted feature gates without which an API server can't store the slices. In Kubernetes 1.37 only
// DRAListTypeAttributes is off by default.
func (m Machine) FeatureGates() []string {
	var gates []string
	for _, d := range m.devices {
		if d.AllowMultipleAllocations {
			gates = append(gates, "DRAConsumableCapacity")
		}
		for _, a := range d.Attributes {
			if a.StringValues != nil {
				gates = append(gates, "DRAListTypeAttributes")
			}
		}
	}
	slices.Sort(gates)
	return slices.Compact(gates)
}

// DeviceClasses returns the classes that the vendors' drivers install. Claims for these machines refer to the classes.
func (m Machine) DeviceClasses() []*resourceapi.DeviceClass {
	result := make([]*resourceapi.DeviceClass, len(m.classes))
	for i, class := range m.classes {
		result[i] = class.DeepCopy()
	}
	return result
}
