// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"github.com/celset/celset/internal/draw"
	"github.com/celset/celset/internal/topology"
)

// board is the common drawing for the devices of all panels with arrangement ByPlace.
type board struct {
	draw.Board
	panels []*Panel
	// devices are the devices of the panels in order. byLabel maps labels to the same devices.
	devices []topology.Device
	byLabel map[string]*Device
}

// locate changes the arrangement of panels from ByOrder to ByPlace if the location of a device in the machine is known.
// Locations may come from devices of other drivers.
func (p *Picture) locate() {
	var panels []*Panel
	var devices []topology.Device
	for i := range p.Panels {
		if panel := &p.Panels[i]; panel.Arrangement == ByOrder {
			panels = append(panels, panel)
			devices = append(devices, panel.described()...)
		}
	}
	locations := topology.Locate(devices)
	var placed []*Panel
	for _, panel := range panels {
		own := locations[:len(panel.Devices)]
		locations = locations[len(panel.Devices):]
		for i := range panel.Devices {
			panel.Devices[i].setLocation(own[i])
			if own[i].Source != topology.Unknown || len(own[i].Roots) > 0 {
				panel.Arrangement = ByPlace
			}
		}
		if panel.Arrangement == ByPlace {
			placed = append(placed, panel)
		}
	}
	if sameLabels(placed) {
		for _, panel := range placed {
			panel.labelWithDriver()
		}
	}
}

func (d *Device) setLocation(l topology.Location) {
	if l.Source != topology.Unknown {
		d.NUMANode = &l.NUMANode
	}
	d.PCIeRoots = l.Roots
}

// described converts the panel's devices to the type that packages topology and draw use.
func (p *Panel) described() []topology.Device {
	devices := make([]topology.Device, len(p.Devices))
	for i := range p.Devices {
		devices[i] = topology.Device{Driver: p.Driver, Name: p.Devices[i].label, Attributes: p.Devices[i].attributes}
	}
	return devices
}

// sameLabels reports whether devices of different panels have the same label.
func sameLabels(panels []*Panel) bool {
	seen := map[string]bool{}
	for _, panel := range panels {
		for i := range panel.Devices {
			if seen[panel.Devices[i].label] {
				return true
			}
			seen[panel.Devices[i].label] = true
		}
	}
	return false
}

func (p *Panel) labelWithDriver() {
	for i := range p.Devices {
		p.Devices[i].label = p.Driver + "/" + p.Devices[i].label
	}
}

// board returns the board of the panels with arrangement ByPlace, or nil if there are no such panels.
func (p *Picture) board() *board {
	b := &board{byLabel: map[string]*Device{}}
	for i := range p.Panels {
		panel := &p.Panels[i]
		if panel.Arrangement != ByPlace {
			continue
		}
		b.panels = append(b.panels, panel)
		b.devices = append(b.devices, panel.described()...)
		for j := range panel.Devices {
			b.byLabel[panel.Devices[j].label] = &panel.Devices[j]
		}
	}
	if len(b.panels) == 0 {
		return nil
	}
	b.Board = draw.NewBoard(b.devices)
	return b
}
