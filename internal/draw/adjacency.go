// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import "github.com/celset/celset/internal/topology"

// peersCanvas draws one line per device: the device and all devices that it is linked to. It is used for graphs that are not
// grids.
//
//	[mla-0 *]  == mla-1 *  -- mla-4 .
func peersCanvas(t topology.Topology, m marking) *canvas {
	nameWidth, most := 0, 0
	for _, d := range t.Devices {
		nameWidth = max(nameWidth, width(d.Name))
		most = max(most, len(d.Neighbors))
	}
	pitch := nameWidth + len("  == ") + len(" *")
	c := newCanvas(nameWidth+cellFrame+most*pitch, len(t.Devices))
	for y, d := range t.Devices {
		c.text(0, y, cell(d.Name, m.symbol(d.Name), nameWidth), m.style(d.Name))
		for i, peer := range d.Neighbors {
			c.peer(nameWidth+cellFrame+i*pitch, y, nameWidth, m, topology.Edge{A: d.Name, B: peer})
		}
	}
	return c
}

func (c *canvas) peer(x, y, nameWidth int, m marking, edge topology.Edge) {
	line := "  -- "
	if m.linkStyle(edge) == chosenStyle {
		line = "  == "
	}
	c.text(x, y, line, m.linkStyle(edge))
	x += len(line)
	c.text(x, y, edge.B, m.style(edge.B))
	c.set(x+nameWidth+1, y, m.symbol(edge.B), m.style(edge.B))
}
