// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"math/bits"

	"github.com/celset/celset/internal/topology"
)

// stretchSearch finds consecutive devices of a ring. It tries sets in the order of their lowest devices. A stretch across the
// closing link of the ring has device 0, so it comes right after the stretch that starts at device 0.
type stretchSearch struct {
	ring, size int
	// wraps means that a stretch may cross the closing link of the ring.
	wraps bool
}

func (s stretchSearch) first(free Set) (Set, int) {
	steps := 1
	for rest := free; rest != 0; rest &= rest - 1 {
		start := rest.lowest()
		steps++
		if start+s.size <= s.ring {
			if stretch := first(s.size) << start; stretch&^free == 0 {
				return stretch, steps + s.size - 1
			}
		}
		if start > 0 || !s.wraps {
			continue
		}
		// Among the sets with device 0, a set with more devices from the beginning of the ring comes first.
		for head := s.size - 1; head > 0; head-- {
			steps++
			tail := first(s.size-head) << (s.ring - s.size + head)
			if stretch := first(head) | tail; stretch&^free == 0 {
				return stretch, steps + s.size - 1
			}
		}
	}
	return 0, steps
}

// pairSearch finds a number of whole pairs. The topology links each device to exactly one other device: two GPUs at a bridge,
// or a GPU and a NIC at a PCIe root. Pairs are independent of each other, so the search never backtracks.
type pairSearch struct {
	pairs int
	links [maxDevices]Set
}

func newPairSearch(t topology.Topology, pairs int) *pairSearch {
	return &pairSearch{pairs: pairs, links: linksOf(t)}
}

func (s *pairSearch) first(free Set) (Set, int) {
	steps := 1
	var chosen Set
	for left := s.pairs; left > 0; {
		if free == 0 {
			return 0, steps
		}
		steps++
		d := free & -free
		partner := s.links[d.lowest()&(maxDevices-1)] & free
		free &^= d | partner
		if partner != 0 {
			steps++
			chosen |= d | partner
			left--
		}
	}
	return chosen, steps
}

// cliqueSearch finds devices that are all linked to each other. After each choice, only neighbours of the chosen device are
// possible.
type cliqueSearch struct {
	size  int
	links [maxDevices]Set
}

func newCliqueSearch(t topology.Topology, size int) *cliqueSearch {
	return &cliqueSearch{size: size, links: linksOf(t)}
}

func (s *cliqueSearch) first(free Set) (Set, int) {
	steps := 1
	return s.extend(0, free, s.size, &steps), steps
}

func (s *cliqueSearch) extend(chosen, possible Set, left int, steps *int) Set {
	if left == 0 {
		return chosen
	}
	for possible.Len() >= left {
		d := possible & -possible
		possible &^= d
		*steps++
		beside := possible & s.links[d.lowest()&(maxDevices-1)]
		if found := s.extend(chosen|d, beside, left-1, steps); found != 0 {
			return found
		}
	}
	return 0
}

// blockSearch finds full rectangles of rows x cols in a mesh. If turned, it also finds cols x rows.
//
// Devices are numbered row by row, so the first device of a set is the top left corner of its rectangle.
type blockSearch struct {
	// wide[i] and high[i] are the rectangles with top left corner i: the one with more columns and the one with more rows. A
	// rectangle is empty if it does not fit on the mesh or is not wanted. wide[i] comes before high[i] in the order of sets,
	// because it has more devices of the corner's row.
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

// block returns the devices of the rectangle with the given top left corner. It returns the empty set if the rectangle does not
// fit.
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

// neighbourSearch finds sets in a mesh or torus that give each device at least two neighbours:
//
// 1. Exclude each possible device that has fewer than two neighbours among the chosen and possible devices.
// 2. If a chosen device needs all its possible neighbours, choose them. Repeat from step 1 until nothing changes.
// 3. Choose the lowest possible device and recurse. If no set is found, exclude the device and repeat from step 1.
//
// Shifting the set by one column and by one row, in both directions, finds the devices with two neighbours for all devices at
// once.
type neighbourSearch struct {
	rows, cols int
	wraps      bool
	size       int
	// firstCol and lastCol have the devices of the first and the last column.
	firstCol, lastCol, all Set
	// links[i] has the neighbours of device i.
	links [maxDevices]Set
}

func newNeighbourSearch(t topology.Topology, size int) *neighbourSearch {
	s := &neighbourSearch{
		rows: t.Rows, cols: t.Cols, wraps: t.Kind == topology.Torus,
		size: size, all: first(t.Rows * t.Cols), links: linksOf(t),
	}
	for row := range t.Rows {
		s.firstCol |= bit(row * t.Cols)
		s.lastCol |= bit(row*t.Cols + t.Cols - 1)
	}
	return s
}

// linksOf returns, for each device, the set of its neighbours.
func linksOf(t topology.Topology) [maxDevices]Set {
	order := make(map[string]int, len(t.Devices))
	for i, d := range t.Devices {
		order[d.Name] = i
	}
	var links [maxDevices]Set
	for i, d := range t.Devices {
		for _, neighbor := range d.Neighbors {
			links[i] |= bit(order[neighbor])
		}
	}
	return links
}

// withTwo returns all devices that have at least two neighbours in the set. They need not be in the set themselves.
func (s *neighbourSearch) withTwo(set Set) Set {
	left, right := set<<1&^s.firstCol, set>>1&^s.lastCol
	above, below := set<<s.cols, set>>s.cols
	if s.wraps {
		left |= set >> (s.cols - 1) & s.firstCol
		right |= set << (s.cols - 1) & s.lastCol
		above |= set >> (s.cols * (s.rows - 1))
		below |= set << (s.cols * (s.rows - 1))
	}
	return (left&right | above&below | (left|right)&(above|below)) & s.all
}

func (s *neighbourSearch) first(free Set) (Set, int) {
	steps := 1
	return s.extend(0, free, s.size, &steps), steps
}

// extend adds left possible devices to the chosen ones. It tries the lowest possible device first, then excludes the device. So
// it returns the first set in order, although propagation chooses some devices earlier.
func (s *neighbourSearch) extend(chosen, possible Set, left int, steps *int) Set {
	for {
		var ok bool
		if chosen, possible, left, ok = s.propagate(chosen, possible, left, steps); !ok {
			return 0
		}
		if left == 0 {
			return chosen
		}
		next := possible & -possible
		possible &^= next
		*steps++
		if found := s.extend(chosen|next, possible, left-1, steps); found != 0 {
			return found
		}
	}
}

// propagate excludes possible devices and chooses forced ones until nothing changes. It returns false if no set is possible.
func (s *neighbourSearch) propagate(chosen, possible Set, left int, steps *int) (Set, Set, int, bool) {
	for {
		dropped := (chosen | possible) &^ s.withTwo(chosen|possible)
		if dropped&chosen != 0 {
			return 0, 0, 0, false
		}
		possible &^= dropped
		if dropped != 0 {
			continue
		}
		if possible.Len() < left {
			return 0, 0, 0, false
		}
		forced, near, ok := s.follow(chosen, possible, left)
		if !ok {
			return 0, 0, 0, false
		}
		if forced == 0 && near == possible {
			return chosen, possible, left, true
		}
		*steps += forced.Len()
		left -= forced.Len()
		chosen |= forced
		possible = near &^ forced
	}
}

// follow examines the chosen devices that lack neighbours. forced has the possible devices that they need. near has the devices
// that remain possible: if a chosen device needs all remaining choices, these are its neighbours.
func (s *neighbourSearch) follow(chosen, possible Set, left int) (forced, near Set, ok bool) {
	for lacking := chosen &^ s.withTwo(chosen); lacking != 0; lacking &= lacking - 1 {
		links := s.links[lacking.lowest()&(maxDevices-1)]
		need := 2 - bits.OnesCount64(uint64(links&chosen))
		if need > left {
			return 0, 0, false
		}
		if need == left {
			possible &= links
		}
		switch available := (links & possible).Len(); {
		case available < need:
			return 0, 0, false
		case available == need:
			forced |= links & possible
		}
	}
	// A device may be forced by one chosen device and then be excluded by a later one. Then no set is possible.
	return forced, possible, forced&^possible == 0 && forced.Len() <= left
}
