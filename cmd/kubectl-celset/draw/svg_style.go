// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"
)

// color has a shade for light mode and a shade for dark mode.
type color struct{ light, dark string }

// Colours of a picture. Text on paper and in boxes has a contrast of at least 4.5:1 in both modes, and lines on paper of 3:1. A
// viewer that ignores media queries shows the light version.
var (
	paper        = color{"#ffffff", "#0d1117"}
	ink          = color{"#1f2933", "#e6edf3"}
	faintInk     = color{"#52606d", "#a8b3bf"}
	lineInk      = color{"#7b8794", "#7d8590"}
	chosenStroke = color{"#0b6e4f", "#3fb950"}
	chosenFill   = color{"#d3f2d0", "#12442f"}
	freeFill     = color{"#f5f7fa", "#161b22"}
	unusableFill = color{"#e2e2e2", "#373d45"}
	ownerFills   = []color{
		{"#cfe3ff", "#1d3b63"}, {"#ffe0b8", "#5a3a12"}, {"#f9d2e0", "#5c2440"}, {"#e3d9fb", "#41306b"},
		{"#fff3b0", "#4f4510"}, {"#c9f0ef", "#124a4a"}, {"#f3d5c5", "#5a3323"}, {"#dde5b6", "#3b451b"},
	}
)

// CSS classes of boxes. Boxes of devices with an owner have the class ownerClass(i) instead.
const (
	chosenClass   = "chosen"
	freeClass     = "free"
	unusableClass = "unusable"
)

// ownerClass returns the CSS class for boxes of the i-th owner. With more owners than colours, several owners share a class.
func ownerClass(i int) string { return fmt.Sprint("owner-", i%len(ownerFills)) }

// Stylesheet returns the CSS rules for pictures with any number of owners.
func Stylesheet() string { return stylesheet(len(ownerFills)) }

// stylesheet returns the CSS rules for a picture with that number of owners. Each selector starts with the class of the
// picture, because an SVG's rules apply to the whole page that contains the SVG.
func stylesheet(owners int) string {
	var light, dark strings.Builder
	paint := func(property string, c color, classes ...string) {
		selector := ".celset ." + strings.Join(classes, ", .celset .")
		fmt.Fprintf(&light, "    %s { %s: %s }\n", selector, property, c.light)
		fmt.Fprintf(&dark, "      %s { %s: %s }\n", selector, property, c.dark)
	}
	paint("fill", paper, "paper")
	paint("fill", ink, "title", "label", "symbol", "entry")
	paint("fill", faintInk, "caption", "heading", "root")
	paint("stroke", lineInk, "link", "frame", "box")
	paint("stroke", chosenStroke, chosenClass)
	paint("fill", chosenFill, "box."+chosenClass)
	paint("fill", freeFill, freeClass)
	paint("fill", unusableFill, unusableClass)
	for i := range min(owners, len(ownerFills)) {
		paint("fill", ownerFills[i], ownerClass(i))
	}
	return `
    .celset .title { font-size: 18px; font-weight: 600 }
    .celset .caption, .celset .entry { font-size: 13px }
    .celset .heading { font-size: 13px; font-weight: 600 }
    .celset .root { font-size: 12px }
    .celset .label { font-size: 14px; font-weight: 600; text-anchor: middle }
    .celset .symbol { font-size: 11px; font-weight: 600; text-anchor: middle }
    .celset .link { stroke-width: 1.5 }
    .celset .frame { fill: none }
    .celset .free { stroke-dasharray: 4 3 }
    .celset .chosen { stroke-width: 3 }
` + light.String() + "    @media (prefers-color-scheme: dark) {\n" + dark.String() + "    }\n  "
}
