// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// NewTorus wires rows x cols devices, at least 2x2, like a mesh, and also links the ends of every row and column. It has the
// attributes of a mesh.
//
// A row or column of two devices has a single link, because its closing link equals the link of the mesh.
func NewTorus(family Family, rows, cols int) (Topology, error) {
	if err := checkShape(family, rows, cols, 2); err != nil {
		return Topology{}, fmt.Errorf("torus: %w", err)
	}
	t := Topology{Devices: gridDevices(family, rows, cols)}
	t.Close(rows, cols)
	return t, nil
}

// Close wires the devices of a grid, given row by row, as a torus.
func (t *Topology) Close(rows, cols int) {
	connect(t.Devices, append(meshLinks(rows, cols), closingLinks(rows, cols)...))
	t.Kind, t.Rows, t.Cols = Torus, rows, cols
}

func closingLinks(rows, cols int) [][2]int {
	var links [][2]int
	for row := range rows {
		links = append(links, [2]int{row * cols, row*cols + cols - 1})
	}
	for col := range cols {
		links = append(links, [2]int{col, (rows-1)*cols + col})
	}
	return links
}
