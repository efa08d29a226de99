// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"

	"github.com/celset/celset/internal/draw"
	"github.com/celset/celset/internal/topology"
)

// Sizes of NUMA nodes in an SVG picture.
const (
	framePadding = 14
	rootHeight   = 24
)

// grid is a grid of boxes of one size, in columns from the left margin.
type grid struct {
	left, width float64
}

func (g grid) box(row, col int, top float64) rect {
	return rect{
		X: rounded(g.left + float64(col)*(g.width+gap)), Y: rounded(top + float64(row)*(cellHeight+gap)),
		Width: rounded(g.width), Height: cellHeight,
	}
}

// board draws a frame for each NUMA node, with a column for each PCIe root. Interfaces without an accelerator come below.
func (p *page) board(b *board) {
	var drivers []string
	width := float64(leastWidth)
	for _, panel := range b.panels {
		drivers = append(drivers, fmt.Sprintf("%s · %d devices", panel.Driver, len(panel.Devices)))
		width = max(width, panel.boxWidth())
	}
	p.add(text{X: margin, Y: p.y + 18, Size: 13, Fill: faintInk, Text: strings.Join(drivers, ", ")})
	p.width = max(p.width, 2*margin+float64(len([]rune(strings.Join(drivers, ", "))))*smallWidth*1.15)
	p.y += headHeight
	for _, node := range b.NUMANodes {
		p.numaNode(b, node, grid{left: margin + framePadding, width: width})
	}
	if len(b.Others) > 0 {
		p.add(text{X: margin, Y: p.y + 18, Size: 13, Fill: faintInk, Text: "others"})
		p.y += headHeight
		p.rows(b, b.Others, grid{left: margin, width: width})
	}
	if len(b.Guessed) > 0 {
		var names []string
		for _, d := range b.Guessed {
			names = append(names, d.Name)
		}
		remark := "NUMA node by PCI domain, which no driver says: " + strings.Join(names, ", ")
		p.add(text{X: margin, Y: p.y + 18, Size: 13, Fill: faintInk, Text: remark})
		p.width = max(p.width, 2*margin+float64(len([]rune(remark)))*smallWidth*1.15)
		p.y += headHeight
	}
	p.y += margin
}

func (p *page) numaNode(b *board, node draw.NUMANode, g grid) {
	title := "NUMA node unknown"
	switch {
	case node.Known:
		title = fmt.Sprintf("NUMA node %d", node.Number)
	case len(b.NUMANodes) == 1:
		title = "PCIe roots"
	}
	// The size of the frame is set after its contents are drawn.
	frame := &rect{X: margin, Y: p.y, RX: 9, Fill: "none", Stroke: lineInk, StrokeWidth: 1}
	p.add(frame, text{X: g.left, Y: p.y + 20, Size: 13, Weight: "600", Fill: faintInk, Text: title})
	p.y += headHeight + gap/2
	right := p.rows(b, node.Devices, g)
	for start := 0; start < len(node.Roots); start += maxColumns {
		roots := node.Roots[start:min(start+maxColumns, len(node.Roots))]
		right = max(right, p.roots(b, roots, g))
	}
	frame.Width, frame.Height = rounded(right+framePadding-margin), rounded(p.y-frame.Y)
	p.width = max(p.width, right+framePadding+margin)
	p.y += gap
}

// rows draws devices in rows and returns their right edge.
func (p *page) rows(b *board, devices []topology.Device, g grid) float64 {
	right := g.left + g.width
	top := p.y
	for i, d := range devices {
		box := g.box(i/maxColumns, i%maxColumns, top)
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
		p.add(text{X: g.box(0, col, 0).X, Y: top + 14, Size: 12, Fill: faintInk, Text: root.Name})
		for row, d := range root.Devices {
			box := g.box(row, col, top+rootHeight)
			p.device(b.byLabel[d.Name], box)
			right = max(right, box.X+box.Width)
			p.y = max(p.y, box.Y+cellHeight+gap)
		}
	}
	return right
}
