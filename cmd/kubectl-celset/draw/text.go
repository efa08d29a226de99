// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"io"
	"strings"

	"github.com/celset/celset/internal/topology"
)

// Text draws with characters, and with ANSI colours if wanted. Links are drawn between
// devices that stand beside each other; the others are listed.
func (p *Picture) Text(w io.Writer, color bool) error {
	if _, err := fmt.Fprintf(w, "node %s\n", p.Node); err != nil {
		return err
	}
	if len(p.Panels) == 0 {
		_, err := fmt.Fprintln(w, "no devices")
		return err
	}
	var options []topology.Option
	if color {
		options = append(options, topology.WithColor())
	}
	for i := range p.Panels {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := p.Panels[i].text(w, options); err != nil {
			return err
		}
	}
	return nil
}

func (p *Panel) text(w io.Writer, options []topology.Option) error {
	t := topology.Topology{Kind: topology.Placed}
	marks := make(map[string]topology.Mark)
	var links []string
	at := make(map[string]*Device, len(p.Devices))
	for i := range p.Devices {
		at[p.Devices[i].label] = &p.Devices[i]
	}
	for i := range p.Devices {
		device := &p.Devices[i]
		drawn := topology.Device{Driver: p.Driver, Name: device.label, Coordinates: topology.Coordinates{Row: device.Row, Col: device.Col}}
		far := false
		for _, peer := range device.Peers {
			if isBeside(device, at[peer]) {
				drawn.Neighbors = append(drawn.Neighbors, peer)
			} else {
				far = true
			}
		}
		if far {
			links = append(links, fmt.Sprintf("%s: %s", device.label, strings.Join(device.Peers, " ")))
		}
		t.Devices = append(t.Devices, drawn)
		marks[device.label] = device.mark()
	}
	if err := topology.Draw(w, t, marks, options...); err != nil {
		return err
	}
	if len(links) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nlinks\n%s\n", strings.Join(links, "\n"))
	return err
}

func isBeside(a, b *Device) bool {
	rows, cols := a.Row-b.Row, a.Col-b.Col
	return rows*rows+cols*cols == 1
}

func (d *Device) mark() topology.Mark {
	owner, chosen := d.owner()
	switch {
	case chosen:
		return topology.Mark{State: topology.Chosen}
	case owner != "":
		return topology.Mark{State: topology.Taken, Owner: owner}
	default:
		return topology.Mark{}
	}
}

// owner names those who have the device, empty if it is free. With admin access a device
// is free nevertheless.
func (d *Device) owner() (name string, chosen bool) {
	var names []string
	for _, owner := range d.Owners {
		chosen = chosen || owner.Chosen
		if !owner.AdminAccess && (len(names) == 0 || names[len(names)-1] != owner.Claim) {
			names = append(names, owner.Claim)
		}
	}
	return strings.Join(names, ", "), chosen
}
