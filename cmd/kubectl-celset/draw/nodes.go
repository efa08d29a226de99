// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// Node is a node in the picture of a group of pods, drawn as a device is.
type Node struct {
	Name string
	// At are its coordinates, nil if it has none. Nodes with the same Group are drawn together.
	At    []int64
	Group string
	// Chosen: it is for pods of the group. Unusable: it can take none.
	Chosen, Unusable bool
}

// axes are the attributes by which nodes with so many coordinates are arranged.
var axes = [][]resourceapi.QualifiedName{{}, {"index"}, {"row", "col"}, {"x", "y", "z"}}

// Nodes arranges nodes for a group of pods: by coordinates, which go around circles of these lengths if there are some.
func Nodes(group string, nodes []Node, circles []int64) *Picture {
	slices.SortStableFunc(nodes, func(a, b Node) int { return slices.Compare(a.At, b.At) })
	picture := &Picture{Group: group}
	for i := range nodes {
		n := &nodes[i]
		at := slices.IndexFunc(picture.Panels, func(p Panel) bool { return p.Title == n.Group })
		if at < 0 {
			at = len(picture.Panels)
			picture.Panels = append(picture.Panels, Panel{Title: n.Group})
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
	for i := range picture.Panels {
		p := &picture.Panels[i]
		p.arrange(Options{})
		if p.Arrangement == ByCoordinates && isTorus(nodes, circles) {
			p.rows, p.cols = int(circles[0]), int(circles[1])
		}
		if p.Title != "" {
			p.Title = ": " + p.Title
		}
		p.Title = fmt.Sprintf("%d nodes", len(p.Devices)) + p.Title
	}
	return picture
}

// isTorus reports whether there is a node at each place of a torus, row by row.
func isTorus(nodes []Node, circles []int64) bool {
	if n := int64(len(nodes)); len(circles) != 2 || min(circles[0], circles[1]) < 2 || n/circles[1] != circles[0] || n%circles[1] != 0 {
		return false
	}
	for i := range nodes {
		if !slices.Equal(nodes[i].At, []int64{int64(i) / circles[1], int64(i) % circles[1]}) {
			return false
		}
	}
	return true
}
