// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"io"
	"strings"

	"github.com/celset/celset/internal/topology"
)

// textWidth is the intended maximum width of a drawing.
const textWidth = 100

// Option is an option of [Text].
type Option func(*options)

type options struct {
	color bool
}

// WithColor draws chosen and taken devices with ANSI colours. The drawing without colours is plain ASCII and has the same
// information.
func WithColor() Option {
	return func(o *options) { o.color = true }
}

// Text draws the topology, with a title above and a legend of the symbols below. Devices without a mark are free. Links between
// two chosen devices are double:
//
//	[mla-0 *]===[mla-1 *]---[mla-2 .]
//	    ||          ||          |
//	[mla-3 *]===[mla-4 *]---[mla-5 a]
//
// Common topologies with short names take at most 100 columns: rings of up to 64 devices and tori of up to 8x8. A mark of a
// device that the topology lacks is an error.
func Text(w io.Writer, t topology.Topology, marks map[string]Mark, opts ...Option) error {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	marking, err := newMarking(t, marks)
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	pages, around := []*canvas{titleCanvas(t)}, wraps(t)
	if t.Kind == topology.Machine {
		pages = append(pages, machineCanvases(t, marking)...)
	} else {
		picture := pictureCanvas(t, marking)
		if t.Title != "" && picture.width() > textWidth {
			picture, around = symbolCanvas(NewLayout(t), marking), false
		}
		pages = append(pages, picture)
	}
	for _, page := range append(pages, legendCanvas(marking.legend(t), around)) {
		if err := page.writeTo(w, o.color); err != nil {
			return fmt.Errorf("draw %s: %w", t, err)
		}
	}
	return nil
}

func pictureCanvas(t topology.Topology, m marking) *canvas {
	if t.Kind == topology.HybridCubeMesh {
		return peersCanvas(t, m)
	}
	return gridCanvas(NewLayout(t), m)
}

// wraps reports whether the drawing has links that leave the grid on one side and return on the opposite side.
func wraps(t topology.Topology) bool {
	return t.Kind == topology.Torus && max(t.Rows, t.Cols) > 2 || t.Kind == topology.Machine && wrapping(partsOf(t))
}

func titleCanvas(t topology.Topology) *canvas {
	title := t.String()
	c := newCanvas(width(title), 2)
	c.text(0, 0, title, plainStyle)
	return c
}

// legendCanvas writes the legend's entries one after another, on as many lines as needed. around adds the entry for links that
// wrap around.
func legendCanvas(entries []legendEntry, around bool) *canvas {
	if around {
		entries = append(entries, legendEntry{"<- -> ^ v continue on the opposite side", plainStyle})
	}
	const separation = 3
	lines, column, widest := 1, 0, 0
	at := make([]Point, len(entries))
	for i, entry := range entries {
		if column > 0 && column+width(entry.text) > textWidth {
			lines, column = lines+1, 0
		}
		at[i] = Point{Row: lines, Col: column}
		widest = max(widest, column+width(entry.text))
		column += width(entry.text) + separation
	}
	c := newCanvas(widest, lines+1)
	for i, entry := range entries {
		c.text(at[i].Col, at[i].Row, entry.text, entry.style)
	}
	return c
}

// cell returns the box of a device: "[mla-0  *]", with the name padded to nameWidth.
func cell(name string, symbol rune, nameWidth int) string {
	padding := strings.Repeat(" ", max(0, nameWidth-width(name)))
	return fmt.Sprintf("[%s%s %c]", name, padding, symbol)
}

// cellFrame is the width of a cell without the name.
const cellFrame = len("[ *]")
