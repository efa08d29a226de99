// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"

	"github.com/celset/celset/internal/topology"
)

// boardText draws a board. Each NUMA node has a frame with one column per PCIe root, so that a GPU and the network interface
// below the same root share a column.
type boardText struct {
	*canvas
	marking
	nameWidth   int
	columnWidth int
	perBand     int
	framed      bool
	y           int
}

// A column is a list of devices that are drawn one below the other.
type column struct {
	title   string
	devices []topology.Device
}

const (
	columnGap   = 2
	frameMargin = len("| ")
)

func boardCanvas(b Board, m marking) *canvas {
	t := &boardText{marking: m}
	bands := make([][][]column, len(b.NUMANodes))
	for _, node := range b.NUMANodes {
		t.makeRoom(node)
	}
	t.columnWidth = max(t.columnWidth, t.nameWidth+cellFrame)
	t.perBand = max(1, (textWidth-2*frameMargin+columnGap)/(t.columnWidth+columnGap))
	height, widest := 0, 0
	for i, node := range b.NUMANodes {
		bands[i] = t.bands(node)
		height += 2
		for _, band := range bands[i] {
			height += bandHeight(band) + 1
			widest = max(widest, len(band))
		}
	}
	width := widest*(t.columnWidth+columnGap) - columnGap + 2*frameMargin
	t.canvas = newCanvas(max(width, textWidth), height)
	for i, node := range b.NUMANodes {
		t.numaNode(node, bands[i], width)
	}
	t.lines = t.lines[:t.y]
	return t.canvas
}

// makeRoom widens the columns so that the devices of a NUMA node fit.
func (t *boardText) makeRoom(node NUMANode) {
	t.framed = t.framed || node.Known
	for _, d := range node.Devices {
		t.nameWidth = max(t.nameWidth, width(d.Name))
	}
	for _, root := range node.Roots {
		t.columnWidth = max(t.columnWidth, width(root.Name))
		for _, d := range root.Devices {
			t.nameWidth = max(t.nameWidth, width(d.Name))
		}
	}
}

// bands splits the columns of a NUMA node into bands. Each band has as many columns as fit next to each other.
func (t *boardText) bands(node NUMANode) [][]column {
	var loose, roots []column
	for _, d := range node.Devices {
		loose = append(loose, column{devices: []topology.Device{d}})
	}
	for _, root := range node.Roots {
		roots = append(roots, column{title: root.Name, devices: root.Devices})
	}
	return append(chunks(loose, t.perBand), chunks(roots, t.perBand)...)
}

func chunks(columns []column, size int) [][]column {
	var result [][]column
	for len(columns) > size {
		result, columns = append(result, columns[:size]), columns[size:]
	}
	if len(columns) > 0 {
		result = append(result, columns)
	}
	return result
}

func titled(band []column) bool { return band[0].title != "" }

func bandHeight(band []column) int {
	height := 0
	for _, c := range band {
		height = max(height, len(c.devices))
	}
	if titled(band) {
		height++
	}
	return height
}

func (t *boardText) numaNode(node NUMANode, bands [][]column, width int) {
	top, left := t.y, 0
	if t.framed {
		left = frameMargin
		t.y++
	}
	for i, band := range bands {
		// Only a band with titles is preceded by an empty line.
		if i > 0 && titled(band) {
			t.y++
		}
		t.band(band, left)
	}
	if t.framed {
		t.frame(top, width, numaTitle(node))
	}
}

func numaTitle(node NUMANode) string {
	if !node.Known {
		return "NUMA node unknown"
	}
	return fmt.Sprintf("NUMA node %d", node.Number)
}

func (t *boardText) band(band []column, left int) {
	for i, c := range band {
		x, y := left+i*(t.columnWidth+columnGap), t.y
		if titled(band) {
			t.text(x, y, c.title, plainStyle)
			y++
		}
		for j, d := range c.devices {
			t.text(x, y+j, cell(d.Name, t.symbol(d.Name), t.nameWidth), t.style(d.Name))
		}
	}
	t.y += bandHeight(band)
}

// frame draws a frame with a title around the lines from top to the current line.
func (t *boardText) frame(top, width int, title string) {
	// The title may be wider than the columns below it.
	right := max(width, len("+-  -+")+len(title)) - 1
	for _, y := range []int{top, t.y} {
		t.horizontal(1, right-1, y, '-', plainStyle)
		t.set(0, y, '+', plainStyle)
		t.set(right, y, '+', plainStyle)
	}
	for y := top + 1; y < t.y; y++ {
		t.set(0, y, '|', plainStyle)
		t.set(right, y, '|', plainStyle)
	}
	t.text(len("+-"), top, " "+title+" ", plainStyle)
	t.y++
}

// remarks returns the lines below a board: the interfaces in Others, and the devices with a guessed NUMA node.
func (b Board) remarks(m marking) *canvas {
	var lines [][]legendEntry
	byDriver := map[string][]topology.Device{}
	for _, d := range b.Others {
		byDriver[d.Driver] = append(byDriver[d.Driver], d)
	}
	for _, driver := range (topology.Topology{Devices: b.Others}).Drivers() {
		others := byDriver[driver]
		begin := fmt.Sprintf("+ %d others of %s: ", len(others), driver)
		if len(others) == 1 {
			begin = fmt.Sprintf("+ 1 other of %s: ", driver)
		}
		lines = append(lines, m.list(begin, others))
	}
	if len(b.Guessed) > 0 {
		// This line has no symbols, because the board already shows the symbols of these devices.
		lines = append(lines, marking{}.list("NUMA node by PCI domain, which no driver says: ", b.Guessed))
	}
	widest := 0
	for _, line := range lines {
		widest = max(widest, lineWidth(line))
	}
	c := newCanvas(widest, len(lines))
	for y, line := range lines {
		x := 0
		for _, entry := range line {
			c.text(x, y, entry.text, entry.style)
			x += width(entry.text)
		}
	}
	return c
}

func lineWidth(line []legendEntry) int {
	sum := 0
	for _, entry := range line {
		sum += width(entry.text)
	}
	return sum
}

// list returns a line with the names of devices. All devices in use come first, with their symbols. Then come free devices, as
// many as fit on the line.
func (m marking) list(begin string, devices []topology.Device) []legendEntry {
	line := []legendEntry{{text: begin, style: plainStyle}}
	room := textWidth - width(begin)
	add := func(text string, style style) {
		if len(line) > 1 {
			text = ", " + text
		}
		line = append(line, legendEntry{text: text, style: style})
		room -= width(text)
	}
	var free []string
	for _, d := range devices {
		if m.marks[d.Name].State == Free {
			free = append(free, d.Name)
			continue
		}
		add(cell(d.Name, m.symbol(d.Name), 0), m.style(d.Name))
	}
	const more = ", ..."
	for i, name := range free {
		need := len(", ") + width(name)
		if i < len(free)-1 {
			need += len(more)
		}
		if need > room {
			add("...", plainStyle)
			break
		}
		add(name, plainStyle)
	}
	return line
}
