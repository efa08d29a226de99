// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
)

// panel is one of several small plots side by side.
type panel struct {
	title string
	lines []*series
}

// Panels are two in a row, with room for what is written around each.
const (
	panelWide, panelHigh = 250, 190
	panelLeft, panelTop  = 50, 25
	columnWide           = panelWide + panelLeft + 10
	rowHigh              = panelHigh + panelTop + 45
	legendHigh           = 22
	legendWide           = 200
)

// panelsPlot has shares, from 0 to the greatest, by what is on the axis. The lines of all panels have
// the same names.
func panelsPlot(title, axis string, panels []panel) string {
	rows := (len(panels) + 1) / 2
	var names []*series
	most := 0.0
	for _, p := range panels {
		names = p.lines
		for _, line := range p.lines {
			for _, point := range line.points {
				most = max(most, point[1])
			}
		}
	}
	most = ceiling(most)
	const perRow = width / legendWide
	var svg strings.Builder
	begin(&svg, 30+rows*rowHigh+(len(names)+perRow-1)/perRow*legendHigh+10, title)
	for i, p := range panels {
		p.draw(&svg, axis, most, float64(i%2*columnWide+5), float64(30+i/2*rowHigh))
	}
	for i, line := range names {
		x, y := 20+i%perRow*legendWide, 30+rows*rowHigh+i/perRow*legendHigh
		fmt.Fprintf(&svg, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, y, colourOf(i))
		text(&svg, float64(x+18), float64(y+11), "start", line.name)
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// ceiling is where an axis ends.
func ceiling(most float64) float64 {
	for _, end := range []float64{0.02, 0.04, 0.08, 0.12, 0.2, 0.4, 0.6, 0.8} {
		if most <= end {
			return end
		}
	}
	return 1
}

func colourOf(i int) string {
	if i < len(colours) {
		return colours[i]
	}
	return "#888888"
}

func (p panel) draw(svg *strings.Builder, axis string, most, x0, y0 float64) {
	left, top := x0+panelLeft, y0+panelTop
	x := between(p.lines, left, left+panelWide)
	y := func(share float64) float64 { return top + panelHigh*(1-share/most) }
	text(svg, left+panelWide/2, y0+16, "middle", p.title)
	const lines = 4
	for i := range lines + 1 {
		share := most * float64(i) / lines
		fmt.Fprintf(svg, "<path d=\"M%.1f %.1fh%d\" stroke=\"#ddd\"/>\n", left, y(share), panelWide)
		text(svg, left-6, y(share)+4, "end", fmt.Sprintf("%.3g %%", 100*share))
	}
	for i, line := range p.lines {
		var path []string
		for _, point := range line.points {
			path = append(path, fmt.Sprintf("%.1f %.1f", x(point[0]), y(point[1])))
			fmt.Fprintf(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x(point[0]), y(point[1]), colourOf(i))
			if i == 0 {
				text(svg, x(point[0]), top+panelHigh+16, "middle", fmt.Sprintf("%.0f %%", 100*point[0]))
			}
		}
		if len(path) > 0 {
			fmt.Fprintf(svg, "<path d=\"M%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", strings.Join(path, "L"), colourOf(i))
		}
	}
	text(svg, left+panelWide/2, top+panelHigh+32, "middle", axis)
}

// between maps the values on the axis to places.
func between(lines []*series, from, to float64) func(float64) float64 {
	var low, high float64
	for i, line := range lines {
		for j, point := range line.points {
			if i == 0 && j == 0 {
				low, high = point[0], point[0]
			}
			low, high = min(low, point[0]), max(high, point[0])
		}
	}
	if high == low {
		high++
	}
	const margin = 12
	return func(value float64) float64 {
		return from + margin + (to-from-2*margin)*(value-low)/(high-low)
	}
}
