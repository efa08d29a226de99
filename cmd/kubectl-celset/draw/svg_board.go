// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/celset/celset/internal/draw"
	"github.com/celset/celset/internal/topology"
)

// Sizes of the frames around NUMA nodes in an SVG picture, in pixels.
const (
	framePadding = 14
	rootHeight   = 24
)

// grid describes columns of boxes: the left edge of the first column, and the width of each box.
type grid struct {
	left, width float64
}

// columns returns the number of columns that fit into maxWidth.
func (g grid) columns() int {
	return max(1, min(maxColumns, int((maxWidth-2*g.left+gap)/(g.width+gap))))
}

func (g grid) box(row, col int, top float64) rect {
	return rect{
		X: rounded(g.left + float64(col)*(g.width+gap)), Y: rounded(top + float64(row)*(cellHeight+gap)),
		Width: rounded(g.width), Height: cellHeight,
	}
}

// board draws a frame for each NUMA node, with a column for each PCIe root. Network interfaces on PCIe roots without an
// accelerator come below the columns.
func (p *page) board(b *board) {
	var drivers []string
	width := float64(leastWidth)
	for _, panel := range b.panels {
		drivers = append(drivers, fmt.Sprintf("%s · %d devices", panel.Driver, len(panel.Devices)))
		width = max(width, panel.boxWidth())
	}
	for _, node := range b.NUMANodes {
		for _, root := range node.Roots {
			width = max(width, textWidth(root.Name))
		}
	}
	p.captions(strings.Join(drivers, ", "))
	for _, node := range b.NUMANodes {
		p.numaNode(b, node, grid{left: margin + framePadding, width: width})
	}
	if len(b.Others) > 0 {
		p.captions("others")
		p.rows(b, b.Others, grid{left: margin, width: width})
	}
	if len(b.Guessed) > 0 {
		var names []string
		for _, d := range b.Guessed {
			names = append(names, d.Name)
		}
		p.captions("NUMA node by PCI domain, which no driver says: " + strings.Join(names, ", "))
	}
	p.y += margin - gap
}

// captions writes a text in as many lines as needed, none wider than maxWidth.
func (p *page) captions(content string) {
	const height = 18
	written := ""
	for word := range strings.FieldsSeq(content) {
		if next := strings.TrimPrefix(written+" "+word, " "); written == "" || textWidth(next) <= maxWidth-2*margin {
			written = next
			continue
		}
		p.text("caption", margin, p.y+height, written)
		p.y, written = p.y+height, word
	}
	p.text("caption", margin, p.y+height, written)
	p.y += headHeight
}

func (p *page) numaNode(b *board, node draw.NUMANode, g grid) {
	title := "NUMA node unknown"
	switch {
	case node.Known:
		title = fmt.Sprintf("NUMA node %d", node.Number)
	case len(b.NUMANodes) == 1:
		title = "PCIe roots"
	}
	// The frame is appended first, because its contents must cover it. Its size is set after the contents are drawn.
	frame := &rect{Class: "frame", X: margin, Y: p.y, RX: 9}
	p.add(frame)
	p.text("heading", g.left, p.y+20, title)
	p.y += headHeight + gap/2
	right := p.rows(b, node.Devices, g)
	for roots := range slices.Chunk(node.Roots, g.columns()) {
		right = max(right, p.roots(b, roots, g))
	}
	frame.Width, frame.Height = rounded(right+framePadding-margin), rounded(p.y-frame.Y)
	p.width = max(p.width, right+framePadding+margin)
	p.y += gap
}

// rows draws devices in rows of the grid, and returns the right edge of the widest row.
func (p *page) rows(b *board, devices []topology.Device, g grid) float64 {
	right := g.left + g.width
	top := p.y
	for i, d := range devices {
		box := g.box(i/g.columns(), i%g.columns(), top)
		p.device(b.byLabel[d.Name], box)
		right = max(right, box.X+box.Width)
		p.y = max(p.y, box.Y+cellHeight+gap)
	}
	p.width = max(p.width, right+margin)
	return right
}

func (p *page) roots(b *board, roots []draw.PCIeRoot, g grid) float64 {
	right, top := g.left, p.y
	for col, root := range roots {
		p.text("root", g.box(0, col, 0).X, top+14, root.Name)
		for row, d := range root.Devices {
			box := g.box(row, col, top+rootHeight)
			p.device(b.byLabel[d.Name], box)
			right = max(right, box.X+box.Width)
			p.y = max(p.y, box.Y+cellHeight+gap)
		}
	}
	return right
}
