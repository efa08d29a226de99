// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"slices"

	"github.com/celset/celset/internal/topology"
)

// A machinePart is a group of devices of a machine that are drawn together.
type machinePart struct {
	// title is empty if the part is a board.
	title string
	topology.Topology
	// board is nil unless the part is a board.
	board *Board
}

// partsOf splits a machine: a part for each driver whose devices have links, a board, and a part for each remaining driver.
func partsOf(t topology.Topology) []machinePart {
	var linked, placed, silent []topology.Device
	located := map[string]bool{}
	for i, l := range topology.Locate(t.Devices) {
		if l.Source != topology.Unknown || len(l.Roots) > 0 {
			located[t.Devices[i].Driver] = true
		}
	}
	linkedDrivers := map[string]bool{}
	for _, d := range t.Devices {
		linkedDrivers[d.Driver] = linkedDrivers[d.Driver] || len(d.Neighbors) > 0
	}
	for _, d := range t.Devices {
		switch {
		case linkedDrivers[d.Driver]:
			linked = append(linked, d)
		case located[d.Driver]:
			placed = append(placed, d)
		default:
			silent = append(silent, d)
		}
	}
	parts := byDriver(linked, linkedPart)
	if len(placed) > 0 {
		board := NewBoard(placed)
		parts = append(parts, machinePart{Topology: topology.Topology{Kind: topology.Placed, Devices: placed}, board: &board})
	}
	return append(parts, byDriver(silent, silentPart)...)
}

func byDriver(devices []topology.Device, part func(driver string, devices []topology.Device) machinePart) []machinePart {
	var parts []machinePart
	for _, driver := range (topology.Topology{Devices: devices}).Drivers() {
		own := slices.DeleteFunc(slices.Clone(devices), func(d topology.Device) bool { return d.Driver != driver })
		parts = append(parts, part(driver, own))
	}
	return parts
}

// linkedPart returns the part for devices with links: a torus if links wrap around, otherwise a mesh. It sorts the devices by
// row and column.
func linkedPart(driver string, devices []topology.Device) machinePart {
	slices.SortStableFunc(devices, func(a, b topology.Device) int {
		return cmp.Or(cmp.Compare(a.Coordinates.Row, b.Coordinates.Row), cmp.Compare(a.Coordinates.Col, b.Coordinates.Col))
	})
	t := topology.Topology{Kind: topology.Mesh, Devices: devices}
	for _, d := range devices {
		t.Rows, t.Cols = max(t.Rows, d.Coordinates.Row+1), max(t.Cols, d.Coordinates.Col+1)
	}
	for _, edge := range t.Edges() {
		a, _ := t.Device(edge.A)
		b, _ := t.Device(edge.B)
		if distance := abs(a.Coordinates.Row-b.Coordinates.Row) + abs(a.Coordinates.Col-b.Coordinates.Col); distance > 1 {
			t.Kind = topology.Torus
		}
	}
	return machinePart{title: driver, Topology: t}
}

func abs(n int) int { return max(n, -n) }

// silentColumns is the number of devices per row of a part from silentPart.
const silentColumns = 4

// silentPart returns the part for devices without links and without a known location, sorted by the numbers in their names.
func silentPart(driver string, devices []topology.Device) machinePart {
	devices = inOrder(devices)
	for i := range devices {
		devices[i].Coordinates = topology.Coordinates{Row: i / silentColumns, Col: i % silentColumns}
	}
	return machinePart{title: driver, Topology: topology.Topology{Kind: topology.Placed, Devices: devices}}
}

// machineCanvases draws each part on a canvas. All canvases except the first begin with an empty line.
func machineCanvases(t topology.Topology, m marking) []*canvas {
	var pages []*canvas
	parts := partsOf(t)
	for i, part := range parts {
		if i > 0 {
			pages = append(pages, newCanvas(0, 1))
		}
		if part.board != nil {
			pages = append(pages, boardCanvas(*part.board, m), part.board.remarks(m))
			continue
		}
		if len(parts) > 1 {
			title := newCanvas(width(part.title), 1)
			title.text(0, 0, part.title, plainStyle)
			pages = append(pages, title)
		}
		pages = append(pages, pictureCanvas(part.Topology, m))
	}
	return append(pages, tiesCanvas(t.Devices, m))
}

// machinePositions returns the positions of a machine's devices in a Layout. The parts are one below the other. A board has a
// row for each PCIe root, and a row for the devices of a NUMA node that have no root.
func machinePositions(t topology.Topology) []Position {
	at := map[string]Point{}
	top := 0
	row := func(devices []topology.Device) {
		for i, d := range devices {
			at[d.Name] = Point{Row: top, Col: i}
		}
		top++
	}
	for _, part := range partsOf(t) {
		if part.board == nil {
			bottom := top
			for _, d := range part.Devices {
				at[d.Name] = Point{Row: top + d.Coordinates.Row, Col: d.Coordinates.Col}
				bottom = max(bottom, top+d.Coordinates.Row+1)
			}
			top = bottom
			continue
		}
		for _, node := range part.board.NUMANodes {
			row(node.Devices)
			for _, root := range node.Roots {
				row(root.Devices)
			}
		}
		row(part.board.Others)
	}
	places := make([]Position, len(t.Devices))
	for i, d := range t.Devices {
		places[i] = Position{Device: d.Name, At: at[d.Name]}
	}
	return places
}

// wrapping reports whether some part has links that wrap around.
func wrapping(parts []machinePart) bool {
	return slices.ContainsFunc(parts, func(p machinePart) bool { return wraps(p.Topology) })
}
