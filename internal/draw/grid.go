// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

// A grid draws a layout on a canvas: a box for each device, and a line for each link.
type grid struct {
	*canvas
	marking
	nameWidth  int
	cellWidth  int
	gap        int // columns between two boxes
	lineHeight int // lines from one row to the next
	marginX    int
	marginY    int
}

func gridCanvas(layout Layout, m marking) *canvas {
	g := newGrid(layout, m)
	for _, link := range layout.Links {
		if link.Wraps {
			g.drawStubs(link)
		} else {
			g.drawPath(link)
		}
	}
	// Draw boxes after links, because boxes cover the ends of links.
	for _, place := range layout.Positions {
		text := cell(place.Device, m.symbol(place.Device), g.nameWidth)
		g.text(g.left(place.At), g.line(place.At), text, m.style(place.Device))
	}
	return g.canvas
}

// symbolCanvas draws only the symbols of the devices, without names.
func symbolCanvas(layout Layout, m marking) *canvas {
	c := newCanvas(2*layout.Cols-1, layout.Rows)
	for _, place := range layout.Positions {
		c.text(2*place.At.Col, place.At.Row, string(m.symbol(place.Device)), m.style(place.Device))
	}
	return c
}

func newGrid(layout Layout, m marking) *grid {
	g := &grid{marking: m, lineHeight: 1}
	for _, place := range layout.Positions {
		g.nameWidth = max(g.nameWidth, width(place.Device))
	}
	g.cellWidth = g.nameWidth + cellFrame
	for _, link := range layout.Links {
		g.makeRoom(link)
	}
	g.gap = g.chooseGap(layout)
	g.canvas = newCanvas(
		2*g.marginX+layout.Cols*(g.cellWidth+g.gap)-g.gap,
		2*g.marginY+(layout.Rows-1)*g.lineHeight+1)
	return g
}

const (
	wrapMargin  = len("<-")
	labelMargin = len("==== ") // line and blank on either side of a label
)

// makeRoom widens the gaps of the grid so that the label of a link fits.
func (g *grid) makeRoom(link Link) {
	horizontal := link.Path[0].Row == link.Path[len(link.Path)-1].Row
	if !horizontal {
		g.lineHeight = 2
	}
	if link.Label != "" {
		g.gap = max(g.gap, width(link.Label)+2*labelMargin)
	}
	switch {
	case link.Wraps && horizontal:
		g.marginX = wrapMargin
	case link.Wraps:
		g.marginY = 1
	}
}

// chooseGap returns the number of columns between two boxes: three, or two if the drawing would be too wide with three.
func (g *grid) chooseGap(layout Layout) int {
	const wide, narrow = 3, 2
	if g.gap > 0 {
		return g.gap
	}
	if 2*g.marginX+layout.Cols*(g.cellWidth+wide)-wide > textWidth {
		return narrow
	}
	return wide
}

// left returns the first column of the box at a point of the layout.
func (g *grid) left(p Point) int {
	return g.marginX + p.Col*(g.cellWidth+g.gap)
}

// center returns the column of the vertical links from the box at a point.
func (g *grid) center(p Point) int {
	return g.left(p) + (g.cellWidth-1)/2
}

// line returns the line of the canvas for a point of the layout.
func (g *grid) line(p Point) int {
	return g.marginY + p.Row*g.lineHeight
}

func (g *grid) drawPath(link Link) {
	for i := range len(link.Path) - 1 {
		g.drawStretch(link.Path[i], link.Path[i+1], g.linkStyle(link.Edge))
	}
	for _, bend := range link.Path[1 : len(link.Path)-1] {
		g.set(g.center(bend), g.line(bend), '+', g.linkStyle(link.Edge))
	}
	if link.Label != "" {
		g.drawLabel(link)
	}
}

func (g *grid) drawStretch(a, b Point, style style) {
	if a.Row == b.Row {
		char := '-'
		if style == chosenStyle {
			char = '='
		}
		g.horizontal(g.center(a), g.center(b), g.line(a), char, style)
		return
	}
	// Skip the ends, because boxes cover them. A bend is as wide as a single line.
	for y := min(g.line(a), g.line(b)) + 1; y < max(g.line(a), g.line(b)); y++ {
		g.text(g.center(a), y, double("|", style), style)
	}
}

// drawLabel writes the label of a horizontal link into its middle.
func (g *grid) drawLabel(link Link) {
	text := " " + link.Label + " "
	x := g.left(link.Path[0]) + g.cellWidth + (g.gap-width(text))/2
	g.text(x, g.line(link.Path[0]), text, g.linkStyle(link.Edge))
}

// drawStubs draws a link that wraps around as two arrows that point out of the grid.
func (g *grid) drawStubs(link Link) {
	a, b, style := link.Path[0], link.Path[1], g.linkStyle(link.Edge)
	if a.Row == b.Row {
		out, in := "<-", "->"
		if style == chosenStyle {
			out, in = "<=", "=>"
		}
		g.text(g.left(a)-wrapMargin, g.line(a), out, style)
		g.text(g.left(b)+g.cellWidth, g.line(b), in, style)
		return
	}
	g.text(g.center(a), g.line(a)-1, double("^", style), style)
	g.text(g.center(b), g.line(b)+1, double("v", style), style)
}

// double doubles the character of a vertical link if the link is between two chosen devices.
func double(sign string, style style) string {
	if style == chosenStyle {
		return sign + sign
	}
	return sign
}
