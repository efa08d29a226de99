// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/topology"
)

// Machine is a kind of machine.
type Machine struct {
	// Name is a DNS label: "aws-p4d".
	Name string
	// Title says in a line what it is.
	Title string
	// devices are in the order in which they are published on a node.
	devices func(node string) []topology.Device
	// classes are the DeviceClasses that come with the drivers.
	classes []class
}

// All lists all machines, in the order of their names.
func All() []Machine {
	machines := slices.Concat(awsMachines(), blackwellMachines(), amdMachines(), hgxMachines(), cpuMachines(),
		intelMachines(), exampleMachines(), tpuMachines(), tenstorrentMachines())
	slices.SortFunc(machines, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
	return machines
}

// Names lists the names of all machines, sorted.
func Names() []string {
	var names []string
	for _, m := range All() {
		names = append(names, m.Name)
	}
	return names
}

// ByName finds a machine. The error for an unknown name says which there are.
func ByName(name string) (Machine, error) {
	for _, m := range All() {
		if m.Name == name {
			return m, nil
		}
	}
	return Machine{}, fmt.Errorf("machine %q: must be one of %s", name, strings.Join(Names(), ", "))
}

// Topology is the devices of a node. Nothing in it is shared with other calls.
func (m Machine) Topology(node string) topology.Topology {
	return topology.Topology{Kind: topology.Machine, Devices: m.devices(node)}
}

// Drivers lists the drivers of the devices, in the order in which they first appear.
func (m Machine) Drivers() []string {
	return m.Topology("").Drivers()
}

// ResourceSlices returns what the drivers publish on a node: one pool for each driver, see
// [topology.Topology.ResourceSlices].
func (m Machine) ResourceSlices(node string) ([]*resourceapi.ResourceSlice, error) {
	return m.Topology(node).ResourceSlices(node)
}

// FeatureGates lists those that an API server must have on to store the slices, sorted. Only
// DRAListTypeAttributes is not on by default in 1.37.
func (m Machine) FeatureGates() []string {
	var gates []string
	for _, d := range m.Topology("").Devices {
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

// class is a DeviceClass: devices of a driver, and of those the ones of a type if it has
// several.
type class struct {
	name, driver, deviceType string
}

// sameName is the class that most drivers come with.
func sameName(drivers ...string) []class {
	classes := make([]class, len(drivers))
	for i, driver := range drivers {
		classes[i] = class{name: driver, driver: driver}
	}
	return classes
}

// DeviceClasses returns the classes that the vendors' drivers come with, by name as claims
// for these machines have it.
func (m Machine) DeviceClasses() []*resourceapi.DeviceClass {
	result := make([]*resourceapi.DeviceClass, len(m.classes))
	for i, class := range m.classes {
		expression := fmt.Sprintf("device.driver == %q", class.driver)
		if class.deviceType != "" {
			expression += fmt.Sprintf(" && device.attributes[%q].type == %q", class.driver, class.deviceType)
		}
		result[i] = &resourceapi.DeviceClass{
			TypeMeta: metav1.TypeMeta{
				APIVersion: resourceapi.SchemeGroupVersion.String(),
				Kind:       "DeviceClass",
			},
			ObjectMeta: metav1.ObjectMeta{Name: class.name},
			Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{
				CEL: &resourceapi.CELDeviceSelector{Expression: expression},
			}}},
		}
	}
	return result
}
