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
	"slices"
	"strings"

	"github.com/celset/celset/internal/draw"
)

// Sizes in an SVG picture, in pixels at scale 1.
const (
	// maxWidth is the intended maximum width of a picture. At this width, a phone of 390 pixels shows labels with a height of 6
	// pixels.
	maxWidth    = 910
	margin      = 24
	titleHeight = 40
	headHeight  = 28
	legendLine  = 26
	cellHeight  = 48
	leastWidth  = 56
	// charWidth is the approximate width of a character in a label. smallWidth is the width of a character in all other texts.
	charWidth, smallWidth = 8.6, 7.2
	// gap is the distance between devices. If links are drawn between devices, the distance is wideGap.
	gap, wideGap = 14, 28
	// stub is the length of the visible part of a link that leaves the panel and continues on the opposite side.
	stub = 12
	// maxLine is the maximum number of characters in a label's line. A longer label is broken into two lines.
	maxLine = 9
)

type svg struct {
	XMLName    xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	ViewBox    string   `xml:"viewBox,attr"`
	Width      int      `xml:"width,attr"`
	Height     int      `xml:"height,attr"`
	FontFamily string   `xml:"font-family,attr"`
	Class      string   `xml:"class,attr"`
	Role       string   `xml:"role,attr"`
	Title      string   `xml:"title"`
	Style      *style   `xml:"style"`
	Items      []any
}

type style struct {
	Text string `xml:",innerxml"`
}

type rect struct {
	XMLName xml.Name `xml:"rect"`
	Class   string   `xml:"class,attr"`
	X       float64  `xml:"x,attr"`
	Y       float64  `xml:"y,attr"`
	Width   float64  `xml:"width,attr"`
	Height  float64  `xml:"height,attr"`
	RX      float64  `xml:"rx,attr,omitempty"`
}

type line struct {
	XMLName xml.Name `xml:"line"`
	Class   string   `xml:"class,attr"`
	X1      float64  `xml:"x1,attr"`
	Y1      float64  `xml:"y1,attr"`
	X2      float64  `xml:"x2,attr"`
	Y2      float64  `xml:"y2,attr"`
}

type text struct {
	XMLName xml.Name `xml:"text"`
	Class   string   `xml:"class,attr"`
	X       float64  `xml:"x,attr"`
	Y       float64  `xml:"y,attr"`
	Text    string   `xml:",chardata"`
}

// group is the SVG element for a device, with its tooltip.
type group struct {
	XMLName xml.Name `xml:"g"`
	Title   string   `xml:"title"`
	Items   []any
}

// SVG draws a page for documents: the panels in rows, and a legend. The colours follow the light or dark mode of the reader.
func (p *Picture) SVG(w io.Writer) error { return p.svg(w, true) }

// PlainSVG draws the same page without a style element, for documents that contain the rules of [Stylesheet].
func (p *Picture) PlainSVG(w io.Writer) error { return p.svg(w, false) }

func (p *Picture) svg(w io.Writer, withStyle bool) error {
	page := newPage(p)
	page.text("title", margin, margin+14, p.title())
	page.y = margin + titleHeight - 10
	board := p.board()
	for i := range p.Panels {
		switch {
		case p.Panels[i].Arrangement != ByPlace:
			page.panel(&p.Panels[i])
		case board != nil:
			page.newRow()
			page.board(board)
			board = nil
		}
	}
	page.newRow()
	page.legend()
	width, height := int(math.Ceil(page.width)), int(math.Ceil(page.y+margin))
	background := rect{Class: "paper", Width: float64(width), Height: float64(height)}
	document := svg{
		ViewBox: fmt.Sprintf("0 0 %d %d", width, height), Width: width, Height: height,
		FontFamily: "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif", Class: "celset", Role: "img",
		Title: "Devices of " + p.title(), Items: append([]any{background}, page.items...),
	}
	if withStyle {
		document.Style = &style{stylesheet(len(page.owners))}
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// page holds the elements drawn so far, and the position of the next element.
type page struct {
	items []any
	width float64
	y     float64
	// x is the left edge of the next panel in the current row of panels, or 0 at the beginning of a row. bottom is the lower
	// edge of the row.
	x, bottom float64
	// entries are the entries of the legend, in the order of the devices. owners are the claims with colours: all owners except
	// the highlighted claim.
	entries []*entry
	owners  []string
}

// entry is an entry of the legend.
type entry struct {
	name, class, symbol string
	count               int
}

// newPage assigns colours and letters to the owners, in the order of the devices.
func newPage(p *Picture) *page {
	page := &page{width: 320}
	for _, panel := range p.Panels {
		for i := range panel.Devices {
			page.entry(&panel.Devices[i]).count++
		}
	}
	return page
}

// entry returns the legend's entry for the owner of a device, and adds it if it is missing.
func (p *page) entry(d *Device) *entry {
	name, _ := d.owner()
	mark, class := d.mark(), unusableClass
	switch mark.State {
	case draw.Free:
		name, class = "free", freeClass
	case draw.Chosen:
		// With admin access only, the device has no owner that could give the entry its name.
		name, class = cmp.Or(name, "chosen"), chosenClass
	case draw.Taken:
		if !slices.Contains(p.owners, name) {
			p.owners = append(p.owners, name)
		}
		class = ownerClass(slices.Index(p.owners, name))
	}
	i := slices.IndexFunc(p.entries, func(e *entry) bool { return e.name == name && e.class == class })
	if i < 0 {
		i = len(p.entries)
		p.entries = append(p.entries, &entry{name: name, class: class})
		if mark.State != draw.Free {
			p.entries[i].symbol = string(mark.Symbol(p.owners))
		}
	}
	return p.entries[i]
}

func (p *page) add(items ...any) { p.items = append(p.items, items...) }

// text writes a left-aligned text. It makes the page wider if necessary.
func (p *page) text(class string, x, y float64, content string) {
	p.add(text{Class: class, X: x, Y: y, Text: content})
	p.width = max(p.width, x+textWidth(content)+margin)
}

func textWidth(content string) float64 { return float64(len([]rune(content))) * smallWidth }

// newRow starts a new row of panels below the current row.
func (p *page) newRow() {
	if p.x > 0 {
		p.x, p.y = 0, p.bottom+margin
	}
}

// panel draws a panel to the right of the previous panel or, without enough width, in a new row. It draws links before devices,
// so that devices cover the ends of links.
func (p *page) panel(panel *Panel) {
	caption := cmp.Or(panel.Title, fmt.Sprintf("%s · %d devices", panel.Driver, len(panel.Devices)))
	order, at := panel.circle(), panel.indices()
	boxes := panel.boxes(order)
	width, offset := textWidth(caption), 0.0
	var links []link
	for i := range panel.Devices {
		width = max(width, boxes[i].X+boxes[i].Width)
		for _, peer := range panel.Devices[i].Peers {
			if l := (link{a: i, b: at[peer]}); panel.Devices[i].label < peer {
				if order == nil {
					l.out = panel.around(l.a, l.b)
				}
				if l.out != (point{}) {
					offset = stub
				}
				links = append(links, l)
			}
		}
	}
	width += 2 * offset
	if p.x > 0 && p.x+width+margin > maxWidth {
		p.newRow()
	}
	p.x = max(p.x, margin)
	p.text("caption", p.x, p.y+18, caption)
	for i := range boxes {
		boxes[i].X, boxes[i].Y = rounded(boxes[i].X+p.x+offset), rounded(boxes[i].Y+p.y+headHeight+offset)
		p.bottom = max(p.bottom, boxes[i].Y+cellHeight+offset)
	}
	for _, l := range links {
		p.link(panel, l, boxes)
	}
	for i, box := range boxes {
		p.device(&panel.Devices[i], box)
	}
	p.x += width + margin
	p.width = max(p.width, p.x)
}

// boxes returns the box of each device. If order is nil, the boxes are at the devices' places. Otherwise they are on a circle
// in this order.
func (p *Panel) boxes(order []int) []rect {
	between := float64(gap)
	if slices.ContainsFunc(p.Devices, func(d Device) bool { return len(d.Peers) > 0 }) {
		between = wideGap
	}
	boxes := make([]rect, len(p.Devices))
	width := p.boxWidth()
	for i := range boxes {
		boxes[i] = rect{
			X: float64(p.Devices[i].Col) * (width + between), Y: float64(p.Devices[i].Row) * (cellHeight + between),
			Width: width, Height: cellHeight,
		}
	}
	n, radius := float64(len(boxes)), radiusOf(len(boxes), width+between)
	for place, i := range order {
		angle := 2 * math.Pi * float64(place) / n
		boxes[i].X, boxes[i].Y = radius+radius*math.Sin(angle), radius-radius*math.Cos(angle)
	}
	return boxes
}

// radiusOf returns the radius of a circle with n boxes whose centers are at least distance apart.
func radiusOf(n int, distance float64) float64 {
	if n < 3 {
		return distance
	}
	return distance / (2 * math.Sin(math.Pi/float64(n)))
}

// circle returns the order of the devices if the panel is drawn as a circle, and otherwise nil. A panel is a circle if its
// devices have links but no coordinates. It is also a circle if its devices have only an index, form one ring of links, and the
// circle is not too wide. Where possible, linked devices are neighbours in the order.
func (p *Panel) circle() []int {
	if p.Arrangement != ByLinks && !p.inLine {
		return nil
	}
	at, seen := p.indices(), make([]bool, len(p.Devices))
	var order []int
	parts, isRing := 0, true
	for start := range p.Devices {
		if isRing = isRing && len(p.Devices[start].Peers) == 2; !seen[start] {
			parts++
		}
		for i := start; !seen[i]; {
			seen[i], order = true, append(order, i)
			if next := slices.IndexFunc(p.Devices[i].Peers, func(peer string) bool { return !seen[at[peer]] }); next >= 0 {
				i = at[p.Devices[i].Peers[next]]
			}
		}
	}
	isTooWide := 2*radiusOf(len(p.Devices), p.boxWidth()+wideGap) > maxWidth
	if p.Arrangement != ByLinks && (parts > 1 || !isRing || isTooWide) {
		return nil
	}
	return order
}

// indices maps the label of each device to the device's index.
func (p *Panel) indices() map[string]int {
	at := make(map[string]int, len(p.Devices))
	for i := range p.Devices {
		at[p.Devices[i].label] = i
	}
	return at
}

// boxWidth returns the width of the panel's boxes, so that the longest line of a label fits.
func (p *Panel) boxWidth() float64 {
	width := float64(leastWidth)
	for i := range p.Devices {
		for _, line := range p.Devices[i].lines() {
			width = max(width, float64(len([]rune(line)))*charWidth+16)
		}
	}
	// Some processors compute a product and a sum in one step, with a different last digit. Rounding makes the SVG the same
	// everywhere.
	return rounded(width)
}

// lines splits a long label into two lines, at the separator nearest to the middle.
func (d *Device) lines() []string {
	runes, cut := []rune(d.label), 0
	distance := func(i int) int { return max(2*i-len(runes), len(runes)-2*i) }
	for i := 1; i < len(runes) && len(runes) > maxLine; i++ {
		if strings.ContainsRune("-./_:", runes[i-1]) && (cut == 0 || distance(i) < distance(cut)) {
			cut = i
		}
	}
	if cut == 0 {
		return []string{d.label}
	}
	return []string{string(runes[:cut]), string(runes[cut:])}
}

func rounded(x float64) float64 { return math.Round(x*10) / 10 }

// link is a link between the devices with the indices a and b. If the link continues around the edge of the panel, out is its
// direction at the box of a. At the box of b, it has the opposite direction.
type link struct {
	a, b int
	out  point
}

// link draws the link as a line, or as two stubs if it continues around the edge. The line is thicker if both devices belong to
// the highlighted claim.
func (p *page) link(panel *Panel, l link, boxes []rect) {
	class := "link"
	if panel.isChosen(l.a) && panel.isChosen(l.b) {
		class += " " + chosenClass
	}
	from, to := boxes[l.a], boxes[l.b]
	x1, y1, x2, y2 := from.X+from.Width/2, from.Y+cellHeight/2, to.X+to.Width/2, to.Y+cellHeight/2
	if l.out == (point{}) {
		p.add(line{Class: class, X1: rounded(x1), Y1: rounded(y1), X2: rounded(x2), Y2: rounded(y2)})
		return
	}
	x, y := float64(l.out.col)*(from.Width/2+stub), float64(l.out.row)*(cellHeight/2+stub)
	p.add(line{Class: class, X1: rounded(x1), Y1: rounded(y1), X2: rounded(x1 + x), Y2: rounded(y1 + y)})
	p.add(line{Class: class, X1: rounded(x2), Y1: rounded(y2), X2: rounded(x2 - x), Y2: rounded(y2 - y)})
}

// around returns the direction of a link from a to b that leaves the panel at an edge. If the link stays inside, it returns the
// zero point.
func (p *Panel) around(a, b int) point {
	from, to, last := &p.Devices[a], &p.Devices[b], point{}
	for i := range p.Devices {
		last = point{max(last.row, p.Devices[i].Row), max(last.col, p.Devices[i].Col)}
	}
	switch rows, cols := to.Row-from.Row, to.Col-from.Col; {
	case rows == 0 && last.col > 1 && max(cols, -cols) == last.col:
		return point{col: -cols / last.col}
	case cols == 0 && last.row > 1 && max(rows, -rows) == last.row:
		return point{row: -rows / last.row}
	}
	return point{}
}

func (p *Panel) isChosen(i int) bool {
	_, chosen := p.Devices[i].owner()
	return chosen
}

// device draws the box of a device with its label. A corner of the box has the symbol that text pictures use for the device.
func (p *page) device(d *Device, box rect) {
	e := p.entry(d)
	box.RX, box.Class = 7, "box "+e.class
	g := group{Title: path.Join(d.Pool, d.Name) + ": " + e.name, Items: []any{box}}
	lines := d.lines()
	y := box.Y + 31 - 7*float64(len(lines)-1)
	for i, part := range lines {
		g.Items = append(g.Items, text{Class: "label", X: rounded(box.X + box.Width/2), Y: rounded(y + 16*float64(i)), Text: part})
	}
	if e.symbol != "" {
		g.Items = append(g.Items, text{Class: "symbol", X: rounded(box.X + box.Width - 8), Y: rounded(box.Y + 12), Text: e.symbol})
	}
	p.add(g)
}

// legend draws an entry for each owner and, as the last entry, free devices.
func (p *page) legend() {
	slices.SortStableFunc(p.entries, func(a, b *entry) int { return cmp.Compare(len(b.symbol), len(a.symbol)) })
	for _, e := range p.entries {
		p.add(rect{Class: "box " + e.class, X: margin, Y: p.y, Width: 18, Height: 18, RX: 4})
		if e.symbol != "" {
			p.add(text{Class: "symbol", X: margin + 9, Y: p.y + 13, Text: e.symbol})
		}
		p.text("entry", margin+28, p.y+13.5, fmt.Sprintf("%s (%d)", e.name, e.count))
		p.y += legendLine
	}
	p.y -= legendLine - 18
}
