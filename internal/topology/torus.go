// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// NewTorus wires rows x cols devices, at least 2x2, to a grid whose rows and
// columns close: as a mesh, but the ends of every row and of every column are
// linked too. Attributes are those of a mesh.
//
// A row or column of two is not linked twice: there the closing link is the one
// that the mesh already has.
func NewTorus(family Family, rows, cols int) (Topology, error) {
	if err := checkShape(family, rows, cols, 2); err != nil {
		return Topology{}, fmt.Errorf("torus: %w", err)
	}
	t := Topology{Devices: gridDevices(family, rows, cols)}
	t.Close(rows, cols)
	return t, nil
}

// Close wires the devices, which are those of a grid row by row, as a torus.
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
