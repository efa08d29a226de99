// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// AttributeRow and AttributeCol are attributes for the position of a device in its mesh or torus: ints that count from 0.
const (
	AttributeRow = "row"
	AttributeCol = "col"
)

// NewMesh returns a grid of rows x cols devices. Each device is linked to its left, right, upper and lower neighbour. The
// devices are numbered row by row.
func NewMesh(family Family, rows, cols int) (Topology, error) {
	if err := checkShape(family, rows, cols, 1); err != nil {
		return Topology{}, fmt.Errorf("mesh: %w", err)
	}
	devices := gridDevices(family, rows, cols)
	connect(devices, meshLinks(rows, cols))
	return Topology{Kind: Mesh, Rows: rows, Cols: cols, Devices: devices}, nil
}

// checkShape checks each dimension before the number of devices, because the product of two valid dimensions can't overflow.
func checkShape(family Family, rows, cols, least int) error {
	if err := checkCount("rows", rows, least, MaxDevices); err != nil {
		return err
	}
	if err := checkCount("cols", cols, least, MaxDevices); err != nil {
		return err
	}
	if err := checkCount(fmt.Sprintf("devices (%dx%d)", rows, cols), rows*cols, 1, MaxDevices); err != nil {
		return err
	}
	return family.validate(rows * cols)
}

func gridDevices(family Family, rows, cols int) []Device {
	devices := make([]Device, rows*cols)
	for i := range devices {
		at := Coordinates{Row: i / cols, Col: i % cols}
		devices[i] = family.device(i, at, attributes{
			AttributeRow: intAttribute(at.Row),
			AttributeCol: intAttribute(at.Col),
		})
	}
	return devices
}

func meshLinks(rows, cols int) [][2]int {
	var links [][2]int
	for i := range rows * cols {
		if i%cols < cols-1 {
			links = append(links, [2]int{i, i + 1})
		}
		if i/cols < rows-1 {
			links = append(links, [2]int{i, i + cols})
		}
	}
	return links
}
