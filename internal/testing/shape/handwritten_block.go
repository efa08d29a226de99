// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

// blockSearch looks for full rectangles of a mesh: of size rows x cols, or, if
// turned, also of cols x rows.
//
// Devices are numbered row by row, so the first device of a set is the top left
// corner of its rectangle, and everything else follows from it.
type blockSearch struct {
	// wide and high have, for each corner, the rectangle in the orientation with
	// more columns and in the other one; empty where it would not fit on the mesh,
	// or if the orientation is not wanted. For the same corner the wide one comes
	// first in order: it has more of the corner's row.
	wide, high [maxDevices]Set
}

func newBlockSearch(meshRows, meshCols, rows, cols int, turned bool) *blockSearch {
	s := &blockSearch{}
	for corner := range meshRows * meshCols {
		s.wide[corner] = block(meshRows, meshCols, corner, rows, cols)
		if turned {
			s.high[corner] = block(meshRows, meshCols, corner, cols, rows)
		}
	}
	return s
}

// block is the rectangle below and to the right of a corner, empty if it does not
// fit on the mesh.
func block(meshRows, meshCols, corner, rows, cols int) Set {
	if corner/meshCols+rows > meshRows || corner%meshCols+cols > meshCols {
		return 0
	}
	var set Set
	for row := range rows {
		set |= first(cols) << (corner + row*meshCols)
	}
	return set
}

func (s *blockSearch) first(free Set) (Set, int) {
	steps := 1
	for rest := free; rest != 0; rest &= rest - 1 {
		steps++
		corner := rest.lowest() & (maxDevices - 1)
		for _, block := range [...]Set{s.wide[corner], s.high[corner]} {
			if block != 0 && block&^free == 0 {
				return block, steps + block.Len() - 1
			}
		}
	}
	return 0, steps
}
