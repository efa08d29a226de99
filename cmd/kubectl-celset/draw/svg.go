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
	// maxWidth is the intended maximum width. On a phone of 390 pixels, labels of such a picture are 6 pixels high.
	maxWidth    = 910
	margin      = 24
	titleHeight = 40
	headHeight  = 28
	legendLine  = 26
	cellHeight  = 48
	leastWidth  = 56
	// charWidth is the approximate width of a character of a label, smallWidth the width of a character of other texts.
	charWidth, smallWidth = 8.6, 7.2
	// gap is the distance between devices, wideGap the distance if links are drawn between them.
	gap, wideGap = 14, 28
	// stub is the visible length of a link that continues on the opposite side.
	stub = 12
	// maxLine is the length in characters from which a label is broken into two lines.
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
	Style      style    `xml:"style"`
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

// group is a device with its tooltip.
type group struct {
	XMLName xml.Name `xml:"g"`
	Title   string   `xml:"title"`
	Items   []any
}

// SVG draws a page for documents: the panels in rows, and a legend. The colours follow the light or dark mode of the reader.
func (p *Picture) SVG(w io.Writer) error {
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
		Title: "Devices of " + p.title(), Style: style{stylesheet(len(page.owners))},
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
	// x is the left edge of the next panel in the row, and bottom the lower edge of the row. x is 0 at the beginning of a row.
	x, bottom float64
	// entries is the legend in the order of the devices. owners are the owners of devices that are not chosen.
	entries []*entry
	owners  []string
}

// entry is an entry of the legend.
type entry struct {
	name, class, symbol string
	count               int
}

// newPage assigns colours and letters to owners in the order of their devices.
func newPage(p *Picture) *page {
	page := &page{width: 320}
	for _, panel := range p.Panels {
		for i := range panel.Devices {
			page.entry(&panel.Devices[i]).count++
		}
	}
	return page
}

// entry returns the legend's entry of a device.
func (p *page) entry(d *Device) *entry {
	name, _ := d.owner()
	mark, class := d.mark(), unusableClass
	switch mark.State {
	case draw.Free:
		name, class = "free", freeClass
	case draw.Chosen:
		// A device with adminAccess has no owner.
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

// text writes a text that is aligned on the left, and widens the page for it.
func (p *page) text(class string, x, y float64, content string) {
	p.add(text{Class: class, X: x, Y: y, Text: content})
	p.width = max(p.width, x+textWidth(content)+margin)
}

func textWidth(content string) float64 { return float64(len([]rune(content))) * smallWidth }

// newRow continues below the panels of the current row.
func (p *page) newRow() {
	if p.x > 0 {
		p.x, p.y = 0, p.bottom+margin
	}
}

// panel draws a panel on the right of the former one, or in a new row. Links are drawn first, so that devices cover their ends.
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

// boxes returns the boxes of the devices, at their coordinates or, if order is not nil, on a circle.
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

// radiusOf returns the radius of a circle on which n boxes have a distance.
func radiusOf(n int, distance float64) float64 {
	if n < 3 {
		return distance
	}
	return distance / (2 * math.Sin(math.Pi/float64(n)))
}

// circle returns the order of the devices on a circle, or nil if they are drawn at their coordinates. Devices without coordinates
// are on a circle, and also devices in a line whose links form one ring. Where possible, a device follows a linked device.
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

// indices maps labels to the indices of the devices.
func (p *Panel) indices() map[string]int {
	at := make(map[string]int, len(p.Devices))
	for i := range p.Devices {
		at[p.Devices[i].label] = i
	}
	return at
}

// boxWidth returns the width that the widest device needs.
func (p *Panel) boxWidth() float64 {
	width := float64(leastWidth)
	for i := range p.Devices {
		for _, line := range p.Devices[i].lines() {
			width = max(width, float64(len([]rune(line)))*charWidth+16)
		}
	}
	// Processors may round a product and a sum together.
	return rounded(width)
}

// lines returns the label in one or two lines. The separator nearest to the middle ends the first line.
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

// link is a link between two devices. A link around the edge of the panel leaves the box of a in the direction out, and the box of
// b in the opposite direction.
type link struct {
	a, b int
	out  point
}

// link draws a link, or two stubs for a link around the edge. It is strong if both devices are highlighted.
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

// around returns the direction in which a link from a to b leaves the panel, or the zero point for other links.
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

// device draws the box of a device with its label, and in a corner the symbol that text pictures have.
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

// legend draws an entry for each owner and, last, for free devices.
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
