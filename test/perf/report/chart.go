// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// The plots are SVG, drawn with few elements so that they can be read in a diff.

const (
	width, height = 640, 360
	left, right   = 70, 170
	top, bottom   = 30, 50
)

var colours = []string{"#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6c4ab6"}

// series is a line in a plot.
type series struct {
	name   string
	points [][2]float64
}

// nodesPlot shows the processor time of a pod by the number of nodes. What ran on another machine is
// left out.
func (r *Results) nodesPlot() string {
	lines := map[string]*series{}
	var order []*series
	for _, p := range r.places() {
		if p.kind != "Steady" || p.devices != 16 || p.occupancy != "half" && p.occupancy != "fragmented" || p.shape != base && p.shape != "grid" {
			continue
		}
		if r.named(p.name()).Other != nil {
			continue
		}
		name := p.occupancy + ", " + p.shape
		if lines[name] == nil {
			lines[name] = &series{name: name}
			order = append(order, lines[name])
		}
		lines[name].points = append(lines[name].points, [2]float64{float64(p.nodes), r.named(p.name()).median(processor)})
	}
	return linePlot("Processor time of a pod, ms", "nodes", order)
}

// linePlot has logarithmic axes.
func linePlot(title, axis string, lines []*series) string {
	var xs, ys []float64
	for _, line := range lines {
		for _, point := range line.points {
			xs, ys = append(xs, point[0]), append(ys, point[1])
		}
	}
	var svg strings.Builder
	begin(&svg, height, title)
	if len(xs) > 0 {
		x := scale(slices.Min(xs), slices.Max(xs), left, width-right)
		y := scale(slices.Min(ys)/1.3, slices.Max(ys)*1.3, height-bottom, top)
		axes(&svg, axis, x, y, xs, ys)
		for i, line := range lines {
			line.draw(&svg, i, x, y)
		}
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// scale maps logarithms of values from one range to another.
func scale(low, high, from, to float64) func(float64) float64 {
	if low == high {
		high = low * 10
	}
	return func(value float64) float64 {
		return from + (to-from)*math.Log(value/low)/math.Log(high/low)
	}
}

func axes(svg *strings.Builder, axis string, x, y func(float64) float64, xs, ys []float64) {
	fmt.Fprintf(svg, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#888\"/>\n", left, top, height-bottom, width-right)
	slices.Sort(xs)
	for _, value := range slices.Compact(xs) {
		text(svg, x(value), height-bottom+18, "middle", fmt.Sprintf("%g", value))
	}
	text(svg, (left+width-right)/2, height-12, "middle", axis)
	for power := math.Floor(math.Log10(slices.Min(ys))); power <= math.Ceil(math.Log10(slices.Max(ys))); power++ {
		for _, digit := range []float64{1, 2, 5} {
			value := digit * math.Pow(10, power)
			if at := y(value); at >= top && at <= height-bottom {
				fmt.Fprintf(svg, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", left, at, width-right)
				text(svg, left-8, at+4, "end", fmt.Sprintf("%g", value))
			}
		}
	}
}

func (s *series) draw(svg *strings.Builder, i int, x, y func(float64) float64) {
	colour := colours[i%len(colours)]
	var path []string
	for _, point := range s.points {
		at := fmt.Sprintf("%.1f %.1f", x(point[0]), y(point[1]))
		path = append(path, at)
		fmt.Fprintf(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x(point[0]), y(point[1]), colour)
	}
	fmt.Fprintf(svg, "<path d=\"M%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", strings.Join(path, "L"), colour)
	fmt.Fprintf(svg, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", width-right+15, top+22*i, colour)
	text(svg, width-right+33, float64(top+22*i+11), "start", s.name)
}

// upstreamPlot shows the ratios of processor time, a bar for each of upstream's workloads.
func (r *Results) upstreamPlot() string {
	const bar, labels = 22, 330
	names := r.upstreamNames()
	_, processors := r.upstreamRatios(throughput)
	high := bar*len(names) + top + 20
	var svg strings.Builder
	begin(&svg, high, "Processor time, upstream's divided by ours")
	most := 1.2
	if len(processors) > 0 {
		most = max(most, slices.Max(processors))
	}
	unit := float64(width-labels-50) / most
	for i, name := range names {
		y := float64(top + bar*i)
		text(&svg, labels-8, y+15, "end", name)
		fmt.Fprintf(&svg, "<rect x=\"%d\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", labels, y+3, unit*processors[i], bar-6, colours[0])
		text(&svg, labels+unit*processors[i]+5, y+15, "start", times(processors[i]))
	}
	fmt.Fprintf(&svg, "<path d=\"M%.1f %dV%d\" stroke=\"#d1495b\" stroke-dasharray=\"4 3\"/>\n</svg>\n", labels+unit, top, top+bar*len(names))
	return svg.String()
}

func begin(svg *strings.Builder, high int, title string) {
	fmt.Fprintf(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", width, high)
	svg.WriteString(mark + "\n")
	fmt.Fprintf(svg, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, high)
	text(svg, width/2, 18, "middle", title)
}

func text(svg *strings.Builder, x, y float64, anchor, content string) {
	fmt.Fprintf(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, html.EscapeString(content))
}
