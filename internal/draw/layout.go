// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/topology"
)

// Layout is the arrangement of a topology on a grid of rows and columns. The renderer chooses the distances between them.
type Layout struct {
	// Rows and Cols are the size of the grid. All positions and paths are within the grid.
	Rows, Cols int
	// Positions has an entry for each device, in the order of Devices.
	Positions []Position
	// Links has an entry for each edge, in the order of [topology.Topology.Edges].
	Links []Link
}

// Position is the position of a device. No two devices share a point.
type Position struct {
	Device string
	At     Point
}

// Link is the drawing of an edge.
type Link struct {
	topology.Edge
	// Path leads from A to B and includes the bends. Its segments are horizontal or vertical, except for the diagonals of a
	// HybridCubeMesh. It touches no device except A and B.
	Path []Point
	// Wraps is set for the links that close the rows and columns of a torus, also in a machine. Such a link leaves the grid
	// next to A and returns next to B, on the opposite side.
	Wraps bool
	// Label is the name of the bridge or PCIe root that joins A and B.
	Label string
}

// Point is a point of the grid. Rows count downwards from 0, columns to the right.
type Point struct {
	Row, Col int
}

// NewLayout arranges a topology. A ring runs along the sides of a rectangle, and a mesh or torus is a grid. Pairs and couples
// are listed one below the other. A hybrid cube mesh is two squares side by side, with linked corners facing each other. A
// machine has a grid for the devices with links, and below it a row for each PCIe root.
func NewLayout(t topology.Topology) Layout {
	places := placesOf(t)
	at := make(map[string]Point, len(places))
	layout := Layout{Positions: places}
	for _, place := range places {
		at[place.Device] = place.At
		layout.include(place.At)
	}
	for _, edge := range t.Edges() {
		link := linkOf(t, edge, at[edge.A], at[edge.B])
		layout.include(link.Path...)
		layout.Links = append(layout.Links, link)
	}
	return layout
}

// include grows the grid to contain the points.
func (l *Layout) include(points ...Point) {
	for _, point := range points {
		l.Rows = max(l.Rows, point.Row+1)
		l.Cols = max(l.Cols, point.Col+1)
	}
}

func placesOf(t topology.Topology) []Position {
	if t.Kind == topology.Machine {
		return machinePositions(t)
	}
	circuit := ringCircuit(len(t.Devices))
	places := make([]Position, len(t.Devices))
	for i, d := range t.Devices {
		at := Point(d.Coordinates)
		switch t.Kind {
		case topology.Ring:
			at = circuit[i]
		case topology.HybridCubeMesh:
			at = cubeMeshPoint(d.Coordinates)
		}
		places[i] = Position{Device: d.Name, At: at}
	}
	return places
}

func linkOf(t topology.Topology, edge topology.Edge, a, b Point) Link {
	link := Link{Edge: edge, Path: []Point{a, b}, Label: linkLabel(t, edge)}
	switch t.Kind {
	case topology.Ring:
		if a.Row != b.Row && a.Col != b.Col {
			link.Path = []Point{a, {Row: b.Row, Col: a.Col}, b}
		}
	case topology.Torus:
		link.Wraps = max(b.Row-a.Row, b.Col-a.Col) > 1
	case topology.Machine:
		link.Wraps = abs(b.Row-a.Row)+abs(b.Col-a.Col) > 1
	case topology.HybridCubeMesh:
		link.Path = cubeMeshPath(a, b)
	}
	return link
}

// linkLabel returns the value of the attribute that joins the two devices of a link, such as the name of a bridge.
func linkLabel(t topology.Topology, edge topology.Edge) string {
	var attribute resourceapi.QualifiedName
	switch t.Kind {
	case topology.BridgePairs:
		attribute = topology.AttributeBridge
	case topology.Couples:
		attribute = topology.AttributePCIeRoot
	default:
		return ""
	}
	d, _ := t.Device(edge.A)
	return stringValue(d, attribute)
}

// ringCols is the maximum number of columns of a ring, so that it fits on a terminal.
const ringCols = 8

// ringCircuit returns n points clockwise around a nearly square rectangle. If n is odd, one point on the bottom side has no
// device, and a straight link crosses this point. If the rectangle has only corners, this point is the bottom right corner, and
// the link bends there.
func ringCircuit(n int) []Point {
	even := n + n%2
	rowsAndCols := even/2 + 2
	cols := min(ringCols, (rowsAndCols+1)/2)
	rows := rowsAndCols - cols
	gap := Point{Row: -1, Col: -1}
	if n != even {
		gap = Point{Row: rows - 1, Col: 1}
	}
	points := make([]Point, 0, even)
	for i := range even {
		if point := circuitPoint(i, rows, cols); point != gap {
			points = append(points, point)
		}
	}
	return points
}

// circuitPoint returns point i on the sides of a rectangle, counted clockwise from the top left corner.
func circuitPoint(i, rows, cols int) Point {
	right, bottom := cols-1, rows-1
	switch {
	case i <= right:
		return Point{Row: 0, Col: i}
	case i <= right+bottom:
		return Point{Row: i - right, Col: right}
	case i <= right+bottom+right:
		return Point{Row: bottom, Col: right - (i - right - bottom)}
	default:
		return Point{Row: bottom - (i - right - bottom - right), Col: 0}
	}
}

// The squares of a hybrid cube mesh are in rows 1 and 2. Rows 0 and 3 have the links between outer corners, because these links
// go around the squares.
const cubeMeshTop, cubeMeshRight = 1, 3

const quadCorners = 4

// cubeMeshPoint returns the position of a device. It places the corners of the first quad clockwise. The second quad is
// mirrored, so that corners 1 and 2 face their counterparts.
func cubeMeshPoint(c topology.Coordinates) Point {
	columns := [quadCorners]int{0, 1, 1, 0}
	rows := [quadCorners]int{0, 0, 1, 1}
	corner := c.Col & (quadCorners - 1)
	point := Point{Row: cubeMeshTop + rows[corner], Col: columns[corner]}
	if c.Row != 0 {
		point.Col = cubeMeshRight - point.Col
	}
	return point
}

func cubeMeshPath(a, b Point) []Point {
	if b.Col-a.Col != cubeMeshRight {
		return []Point{a, b}
	}
	outside := cubeMeshTop - 1
	if a.Row > cubeMeshTop {
		outside = a.Row + 1
	}
	return []Point{a, {Row: outside, Col: a.Col}, {Row: outside, Col: b.Col}, b}
}
