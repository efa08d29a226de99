// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"io"
	"strings"

	"github.com/celset/celset/internal/draw"
	"github.com/celset/celset/internal/topology"
)

// Text draws the picture as text, with ANSI colours if color is set. It draws links between adjacent devices and lists all
// other links.
func (p *Picture) Text(w io.Writer, color bool) error {
	if _, err := fmt.Fprintln(w, p.title()); err != nil {
		return err
	}
	if len(p.Panels) == 0 {
		_, err := fmt.Fprintln(w, "no devices")
		return err
	}
	var options []draw.Option
	if color {
		options = append(options, draw.WithColor())
	}
	board := p.board()
	for i := range p.Panels {
		panel := p.Panels[i].text
		if p.Panels[i].Arrangement == ByPlace {
			if board == nil {
				continue
			}
			panel, board = board.text, nil
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := panel(w, options); err != nil {
			return err
		}
	}
	if err := p.ties(w, options); err != nil {
		return err
	}
	return p.taints(w)
}

// taints lists the taints of all devices, including devices in use.
func (p *Picture) taints(w io.Writer) error {
	var lines []string
	for i := range p.Panels {
		for k := range p.Panels[i].Devices {
			if device := &p.Panels[i].Devices[k]; len(device.Taints) > 0 {
				lines = append(lines, fmt.Sprintf("%s: %s", device.label, strings.Join(device.Taints, " ")))
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\ntaints\n%s\n", strings.Join(lines, "\n"))
	return err
}

// text draws all panels of the board as one drawing without links.
func (b *board) text(w io.Writer, options []draw.Option) error {
	marks := make(map[string]draw.Mark, len(b.byLabel))
	for label, device := range b.byLabel {
		marks[label] = device.mark()
	}
	return draw.Text(w, topology.Topology{Kind: topology.Machine, Devices: b.devices}, marks, options...)
}

// ties lists devices of different panels that have the same value of an attribute, except for attributes of their location.
func (p *Picture) ties(w io.Writer, options []draw.Option) error {
	var panels []*Panel
	var devices []topology.Device
	marks := make(map[string]draw.Mark)
	for i := range p.Panels {
		panel := &p.Panels[i]
		panels, devices = append(panels, panel), append(devices, panel.described()...)
		for j := range panel.Devices {
			marks[panel.Devices[j].label] = panel.Devices[j].mark()
		}
	}
	if sameLabels(panels) {
		return nil
	}
	return draw.TextOfTies(w, devices, marks, options...)
}

func (p *Panel) text(w io.Writer, options []draw.Option) error {
	t := topology.Topology{Kind: topology.Placed, Title: p.Title}
	marks := make(map[string]draw.Mark)
	var links []string
	at := make(map[string]*Device, len(p.Devices))
	for i := range p.Devices {
		at[p.Devices[i].label] = &p.Devices[i]
	}
	for i := range p.Devices {
		device := &p.Devices[i]
		drawn := topology.Device{Driver: p.Driver, Name: device.label, Coordinates: topology.Coordinates{Row: device.Row, Col: device.Col}}
		var far []string
		for _, peer := range device.Peers {
			if isBeside(device, at[peer]) {
				drawn.Neighbors = append(drawn.Neighbors, peer)
			} else {
				far = append(far, peer)
			}
		}
		if len(far) > 0 {
			links = append(links, fmt.Sprintf("%s: %s", device.label, strings.Join(far, " ")))
		}
		t.Devices = append(t.Devices, drawn)
		marks[device.label] = device.mark()
	}
	if p.rows > 0 {
		t.Close(p.rows, p.cols)
	}
	if err := draw.Text(w, t, marks, options...); err != nil {
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

func (d *Device) mark() draw.Mark {
	owner, chosen := d.owner()
	switch {
	case d.Unusable && !chosen:
		return draw.Mark{State: draw.Unusable}
	case chosen:
		return draw.Mark{State: draw.Chosen}
	case owner == taintedOwner:
		return draw.Mark{State: draw.Tainted}
	case owner != "":
		return draw.Mark{State: draw.Taken, Owner: owner}
	default:
		return draw.Mark{}
	}
}

// taintedOwner is drawn as the owner of a device that is free but has a taint, so that only claims with a toleration can get
// it.
const taintedOwner = "tainted"

// owner returns the names of the claims that own the device, or "" if it is free. A claim with admin access does not own the
// device. chosen is set if one of the claims is highlighted.
func (d *Device) owner() (name string, chosen bool) {
	var names []string
	for _, owner := range d.Owners {
		chosen = chosen || owner.Chosen
		if !owner.AdminAccess && (len(names) == 0 || names[len(names)-1] != owner.Claim) {
			names = append(names, owner.Claim)
		}
	}
	if d.Unusable && !chosen {
		names = append(names, "not usable")
	}
	if len(names) == 0 && len(d.Taints) > 0 && !chosen {
		names = append(names, taintedOwner)
	}
	return strings.Join(names, ", "), chosen
}
