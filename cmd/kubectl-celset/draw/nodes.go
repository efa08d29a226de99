// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cmd/kubectl-celset/output"
)

// Node is a node in the picture of a group of pods. It is drawn like a device.
type Node struct {
	Name string
	// At holds the node's coordinates, or is nil. Nodes with the same Group share a panel.
	At    []int64
	Group string
	// Chosen is set if the scheduler chose the node for pods of the group. Unusable is set if no pod of the group fits there.
	Chosen, Unusable bool
}

// axes[n] holds the names of the attributes for nodes with n coordinates.
var axes = [][]resourceapi.QualifiedName{{}, {"index"}, {"row", "col"}, {"x", "y", "z"}}

// Nodes returns a picture of the nodes for a group of pods, arranged by the nodes' coordinates. circles[i] is the length of the
// i-th coordinate if that coordinate is circular. Nodes without coordinates are in a separate panel.
func Nodes(group string, nodes []Node, circles []int64) *Picture {
	slices.SortStableFunc(nodes, func(a, b Node) int { return slices.Compare(a.At, b.At) })
	haveCoordinates := slices.ContainsFunc(nodes, func(n Node) bool { return len(n.At) > 0 })
	picture := &Picture{Meta: output.NewMeta(output.Picture), Group: group, Panels: []Panel{}}
	for i := range nodes {
		n := &nodes[i]
		title := n.Group
		if haveCoordinates && len(n.At) == 0 {
			title = strings.TrimPrefix(title+", without coordinates", ", ")
		}
		at := slices.IndexFunc(picture.Panels, func(p Panel) bool { return p.Title == title })
		if at < 0 {
			at = len(picture.Panels)
			picture.Panels = append(picture.Panels, Panel{Title: title})
		}
		d := Device{Name: n.Name, label: n.Name, Unusable: n.Unusable, attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
		if n.Chosen {
			d.Owners = []Owner{{Claim: group, Chosen: true}}
		}
		if len(n.At) < len(axes) {
			for axis, name := range axes[len(n.At)] {
				d.attributes[name] = resourceapi.DeviceAttribute{IntValue: &n.At[axis]}
			}
		}
		picture.Panels[at].Devices = append(picture.Panels[at].Devices, d)
	}
	// Nodes without coordinates come last.
	slices.SortStableFunc(picture.Panels, func(a, b Panel) int { return cmp.Compare(len(b.Devices[0].attributes), len(a.Devices[0].attributes)) })
	for i := range picture.Panels {
		p := &picture.Panels[i]
		p.arrange(Options{})
		if p.Arrangement == ByCoordinates && isTorus(p.Devices, circles) {
			p.rows, p.cols = int(circles[0]), int(circles[1])
		}
		if p.Title != "" {
			p.Title = ": " + p.Title
		}
		count := fmt.Sprintf("%d nodes", len(p.Devices))
		if len(p.Devices) == 1 {
			count = "1 node"
		}
		p.Title = count + p.Title
	}
	return picture
}

// isTorus reports whether the devices fill a torus of the size circles, with one device at each place.
func isTorus(devices []Device, circles []int64) bool {
	if n := int64(len(devices)); len(circles) != 2 || min(circles[0], circles[1]) < 2 || n/circles[1] != circles[0] || n%circles[1] != 0 {
		return false
	}
	places := map[point]bool{}
	for i := range devices {
		d := &devices[i]
		row, col := d.attributes["row"].IntValue, d.attributes["col"].IntValue
		if row == nil || col == nil || *row != int64(d.Row) || *col != int64(d.Col) || *row >= circles[0] || *col >= circles[1] {
			return false
		}
		places[point{d.Row, d.Col}] = true
	}
	return len(places) == len(devices)
}
