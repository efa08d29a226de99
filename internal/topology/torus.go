// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// NewTorus returns a mesh of rows x cols devices, at least 2x2, and also links the ends of every row and column. The devices
// have the attributes of a mesh.
//
// In a row or column of two devices, the closing link equals the link of the mesh, so there is only one link.
func NewTorus(family Family, rows, cols int) (Topology, error) {
	if err := checkShape(family, rows, cols, 2); err != nil {
		return Topology{}, fmt.Errorf("torus: %w", err)
	}
	t := Topology{Devices: gridDevices(family, rows, cols)}
	t.Close(rows, cols)
	return t, nil
}

// Close adds the links of a torus to devices that are given row by row.
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
