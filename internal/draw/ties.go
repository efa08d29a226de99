// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"io"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/topology"
)

// Ties are groups of devices of different drivers that belong together because of a vendor's attribute, and not because of
// their place in the machine.
type Ties struct {
	// Attribute is the attribute with the same value for all devices of a group.
	Attribute resourceapi.QualifiedName
	// Groups has the groups. Each group has devices of several drivers, sorted by driver.
	Groups [][]topology.Device
}

// FindTies returns the groups of the attribute that forms the most groups of devices of several drivers. found is false if no
// attribute forms at least two groups. FindTies ignores attributes without a domain and the attributes that [topology.Locate]
// reads.
func FindTies(devices []topology.Device) (ties Ties, found bool) {
	sorted := inOrder(devices)
	for _, name := range commonNames(sorted) {
		if groups := tied(sorted, name); len(groups) > max(1, len(ties.Groups)) {
			ties, found = Ties{Attribute: name, Groups: groups}, true
		}
	}
	return ties, found
}

// commonNames returns the sorted names of attributes that have a domain, because a name without a domain is local to one
// driver.
func commonNames(devices []topology.Device) []resourceapi.QualifiedName {
	var names []resourceapi.QualifiedName
	for _, d := range devices {
		for name := range d.Attributes {
			place := name == topology.AttributePCIeRoot || name == topology.AttributeNUMANode
			if strings.Contains(string(name), "/") && !place {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// tied groups the devices by the value of an attribute. It returns only groups with devices of several drivers.
func tied(devices []topology.Device, name resourceapi.QualifiedName) [][]topology.Device {
	var values []string
	members := map[string][]topology.Device{}
	for _, d := range devices {
		value := stringValue(d, name)
		if value == "" {
			continue
		}
		if members[value] == nil {
			values = append(values, value)
		}
		members[value] = append(members[value], d)
	}
	var groups [][]topology.Device
	for _, value := range values {
		if len(topology.Topology{Devices: members[value]}.Drivers()) > 1 {
			groups = append(groups, members[value])
		}
	}
	return groups
}

// stringValue returns the value of a string attribute, or "".
func stringValue(d topology.Device, name resourceapi.QualifiedName) string {
	if value := d.Attributes[name].StringValue; value != nil {
		return *value
	}
	return ""
}

// TextOfTies writes a line for each group, with the symbols of [Text]. It writes nothing without groups:
//
//	same resource.aws.com/devicegroup1_id
//	neuron-device-0 *   neuron-device-1 .   pci-0000-10-1d-0 *
func TextOfTies(w io.Writer, devices []topology.Device, marks map[string]Mark, opts ...Option) error {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	t := topology.Topology{Kind: topology.Machine, Devices: devices}
	marking, err := newMarking(t, marks)
	if err != nil {
		return fmt.Errorf("draw ties: %w", err)
	}
	if err := tiesCanvas(devices, marking).writeTo(w, o.color); err != nil {
		return fmt.Errorf("draw ties of %s: %w", t, err)
	}
	return nil
}

// tiesCanvas draws the ties on a canvas that begins with an empty line. If there are no ties, the canvas is empty.
func tiesCanvas(devices []topology.Device, m marking) *canvas {
	ties, found := FindTies(devices)
	if !found {
		return newCanvas(0, 0)
	}
	const separation = 3
	nameWidth, most := 0, 0
	for _, group := range ties.Groups {
		most = max(most, len(group))
		for _, d := range group {
			nameWidth = max(nameWidth, width(d.Name))
		}
	}
	pitch := nameWidth + len(" *") + separation
	title := "same " + string(ties.Attribute)
	c := newCanvas(max(width(title), most*pitch), 2+len(ties.Groups))
	c.text(0, 1, title, plainStyle)
	for y, group := range ties.Groups {
		for x, d := range group {
			c.text(x*pitch, y+2, fmt.Sprintf("%-*s %c", nameWidth, d.Name, m.symbol(d.Name)), m.style(d.Name))
		}
	}
	return c
}
