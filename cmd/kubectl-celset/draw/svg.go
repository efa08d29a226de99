// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"path"
)

// Sizes in an SVG picture, in pixels at scale 1.
const (
	margin      = 24
	titleHeight = 40
	headHeight  = 28
	legendLine  = 26
	cellHeight  = 48
	leastWidth  = 104
	// charWidth is the approximate width of a character of a label, smallWidth the width of a character of an owner.
	charWidth, smallWidth = 8.4, 6.6
	// gap is the distance between devices, wideGap the distance if links are drawn between them.
	gap, wideGap = 14, 40
	// maxOwnerText is the maximum length of an owner in a cell.
	maxOwnerText = 22
)

// Backgrounds are light and text is dark, so that pictures are readable on paper, too.
const (
	ink, faintInk, lineInk = "#1f2933", "#52606d", "#9aa5b1"
	paper, freeFill        = "#ffffff", "#f5f7fa"
	chosenStroke           = "#0b6e4f"
)

var ownerFills = []string{
	"#cfe3ff", "#ffe0b8", "#d3f2d0", "#f9d2e0", "#e3d9fb", "#fff3b0", "#c9f0ef", "#f3d5c5", "#dde5b6", "#e2e2e2",
}

type svg struct {
	XMLName    xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	ViewBox    string   `xml:"viewBox,attr"`
	Width      int      `xml:"width,attr"`
	Height     int      `xml:"height,attr"`
	FontFamily string   `xml:"font-family,attr"`
	Role       string   `xml:"role,attr"`
	Title      string   `xml:"title"`
	Items      []any
}

type rect struct {
	XMLName     xml.Name `xml:"rect"`
	X           float64  `xml:"x,attr"`
	Y           float64  `xml:"y,attr"`
	Width       float64  `xml:"width,attr"`
	Height      float64  `xml:"height,attr"`
	RX          float64  `xml:"rx,attr,omitempty"`
	Fill        string   `xml:"fill,attr"`
	Stroke      string   `xml:"stroke,attr,omitempty"`
	StrokeWidth float64  `xml:"stroke-width,attr,omitempty"`
	Dashes      string   `xml:"stroke-dasharray,attr,omitempty"`
}

type line struct {
	XMLName     xml.Name `xml:"line"`
	X1          float64  `xml:"x1,attr"`
	Y1          float64  `xml:"y1,attr"`
	X2          float64  `xml:"x2,attr"`
	Y2          float64  `xml:"y2,attr"`
	Stroke      string   `xml:"stroke,attr"`
	StrokeWidth float64  `xml:"stroke-width,attr"`
}

type text struct {
	XMLName xml.Name `xml:"text"`
	X       float64  `xml:"x,attr"`
	Y       float64  `xml:"y,attr"`
	Size    float64  `xml:"font-size,attr"`
	Weight  string   `xml:"font-weight,attr,omitempty"`
	Anchor  string   `xml:"text-anchor,attr,omitempty"`
	Fill    string   `xml:"fill,attr"`
	Text    string   `xml:",chardata"`
}

// group is a device with its tooltip.
type group struct {
	XMLName xml.Name `xml:"g"`
	Title   string   `xml:"title"`
	Items   []any
}

// SVG draws a page for documents: the panels below each other, and a legend.
func (p *Picture) SVG(w io.Writer) error {
	page := newPage(p)
	page.add(text{X: margin, Y: margin + 14, Size: 18, Weight: "600", Fill: ink, Text: p.title()})
	page.y = margin + titleHeight - 10
	board := p.board()
	for i := range p.Panels {
		switch {
		case p.Panels[i].Arrangement != ByPlace:
			page.panel(&p.Panels[i])
		case board != nil:
			page.board(board)
			board = nil
		}
	}
	page.legend()
	width, height := int(math.Ceil(page.width)), int(math.Ceil(page.y+margin))
	background := rect{Width: float64(width), Height: float64(height), Fill: paper}
	document := svg{
		ViewBox: fmt.Sprintf("0 0 %d %d", width, height), Width: width, Height: height,
		FontFamily: "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif", Role: "img",
		Title: "Devices of " + p.title(),
		Items: append([]any{background}, page.items...),
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// page holds the drawn items and the current position.
type page struct {
	items []any
	width float64
	y     float64
	// fills maps owners to colours. order is the order of the legend. counts maps owners to their number of devices.
	fills  map[string]string
	order  []string
	counts map[string]int
	chosen map[string]bool
	free   int
}

// newPage assigns colours to owners in the order of their devices.
func newPage(p *Picture) *page {
	page := &page{width: 320, fills: make(map[string]string), counts: make(map[string]int), chosen: make(map[string]bool)}
	for _, panel := range p.Panels {
		for i := range panel.Devices {
			owner, chosen := panel.Devices[i].owner()
			if owner == "" {
				page.free++
				continue
			}
			if page.counts[owner]++; page.fills[owner] == "" {
				page.fills[owner] = ownerFills[len(page.order)%len(ownerFills)]
				page.order = append(page.order, owner)
			}
			page.chosen[owner] = page.chosen[owner] || chosen
		}
	}
	return page
}

func (p *page) add(items ...any) { p.items = append(p.items, items...) }

// panel draws links first, so that devices cover their ends.
func (p *page) panel(panel *Panel) {
	p.add(text{X: margin, Y: p.y + 18, Size: 13, Fill: faintInk, Text: cmp.Or(panel.Title, fmt.Sprintf("%s · %d devices", panel.Driver, len(panel.Devices)))})
	p.y += headHeight
	boxes := p.boxes(panel)
	at := make(map[string]rect, len(boxes))
	for i, box := range boxes {
		at[panel.Devices[i].label] = box
	}
	for i := range panel.Devices {
		device := &panel.Devices[i]
		for _, peer := range device.Peers {
			if to := at[peer]; device.label < peer {
				p.link(device, panel, peer, at[device.label], to)
			}
		}
	}
	for i, box := range boxes {
		p.device(&panel.Devices[i], box)
		p.width = max(p.width, box.X+box.Width+margin)
		p.y = max(p.y, box.Y+box.Height)
	}
	p.y += margin
}

// boxes returns the boxes of the devices: at their coordinates, or on a circle if only links are known.
func (p *page) boxes(panel *Panel) []rect {
	width, linked := panel.boxWidth(), false
	for i := range panel.Devices {
		linked = linked || len(panel.Devices[i].Peers) > 0
	}
	between := float64(gap)
	if linked {
		between = wideGap
	}
	boxes := make([]rect, len(panel.Devices))
	n := float64(len(boxes))
	// The distance on the circle is the same as in rows.
	radius := max(n*(width+between)/(2*math.Pi), cellHeight+between)
	for i := range boxes {
		boxes[i] = rect{Width: width, Height: cellHeight}
		if panel.Arrangement == ByLinks {
			angle := 2 * math.Pi * float64(i) / n
			boxes[i].X = margin + radius + radius*math.Sin(angle)
			boxes[i].Y = p.y + radius - radius*math.Cos(angle)
		} else {
			boxes[i].X = margin + float64(panel.Devices[i].Col)*(width+between)
			boxes[i].Y = p.y + float64(panel.Devices[i].Row)*(cellHeight+between)
		}
		boxes[i].X, boxes[i].Y = rounded(boxes[i].X), rounded(boxes[i].Y)
	}
	return boxes
}

// boxWidth returns the width that the widest device needs.
func (p *Panel) boxWidth() float64 {
	width := float64(leastWidth)
	for i := range p.Devices {
		owner, _ := p.Devices[i].owner()
		width = max(width, float64(len([]rune(p.Devices[i].label)))*charWidth+24, float64(len([]rune(cut(owner))))*smallWidth+20)
	}
	return width
}

func rounded(x float64) float64 { return math.Round(x*10) / 10 }

// link draws a link. It is strong between two devices of the highlighted claim.
func (p *page) link(a *Device, panel *Panel, peer string, from, to rect) {
	stroke, width := lineInk, 1.5
	if _, chosen := a.owner(); chosen && panel.isChosen(peer) {
		stroke, width = chosenStroke, 3
	}
	p.add(line{
		X1: rounded(from.X + from.Width/2), Y1: rounded(from.Y + from.Height/2),
		X2: rounded(to.X + to.Width/2), Y2: rounded(to.Y + to.Height/2), Stroke: stroke, StrokeWidth: width,
	})
}

func (p *Panel) isChosen(label string) bool {
	for i := range p.Devices {
		if p.Devices[i].label == label {
			_, chosen := p.Devices[i].owner()
			return chosen
		}
	}
	return false
}

func (p *page) device(d *Device, box rect) {
	owner, chosen := d.owner()
	box.RX, box.Fill, box.Stroke, box.StrokeWidth = 7, freeFill, lineInk, 1
	title := path.Join(d.Pool, d.Name) + ": free"
	if owner != "" {
		box.Fill = p.fills[owner]
		title = path.Join(d.Pool, d.Name) + ": " + owner
	} else {
		box.Dashes = "4 3"
	}
	if chosen {
		box.Stroke, box.StrokeWidth, box.Dashes = chosenStroke, 3, ""
	}
	center := rounded(box.X + box.Width/2)
	name := text{X: center, Y: box.Y + 29, Size: 14, Weight: "600", Anchor: "middle", Fill: ink, Text: d.label}
	g := group{Title: title, Items: []any{box}}
	if owner == "" {
		g.Items = append(g.Items, name)
	} else {
		name.Y = box.Y + 21
		g.Items = append(g.Items, name, text{X: center, Y: box.Y + 38, Size: 11, Anchor: "middle", Fill: faintInk, Text: cut(owner)})
	}
	p.add(g)
}

// cut shortens a text from the left, because the end of a claim's name matters more than its namespace.
func cut(owner string) string {
	if runes := []rune(owner); len(runes) > maxOwnerText {
		return "…" + string(runes[len(runes)-maxOwnerText+1:])
	}
	return owner
}

// legend draws an entry for each owner and one for free devices.
func (p *page) legend() {
	entry := func(swatch rect, label string) {
		swatch.X, swatch.Y, swatch.Width, swatch.Height, swatch.RX = margin, p.y, 18, 18, 4
		p.add(swatch, text{X: margin + 28, Y: p.y + 13.5, Size: 13, Fill: ink, Text: label})
		p.width = max(p.width, margin+28+float64(len([]rune(label)))*smallWidth*1.15+margin)
		p.y += legendLine
	}
	for _, owner := range p.order {
		swatch := rect{Fill: p.fills[owner], Stroke: lineInk, StrokeWidth: 1}
		if p.chosen[owner] {
			swatch.Stroke, swatch.StrokeWidth = chosenStroke, 3
		}
		entry(swatch, fmt.Sprintf("%s (%d)", owner, p.counts[owner]))
	}
	if p.free > 0 {
		entry(rect{Fill: freeFill, Stroke: lineInk, StrokeWidth: 1, Dashes: "4 3"}, fmt.Sprintf("free (%d)", p.free))
	}
	p.y -= legendLine - 18
}
