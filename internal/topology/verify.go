// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
)

// The checks below judge a set of devices by the links between them. A set that
// is empty, names a device twice or names one that the topology does not have
// passes none of them; Select tells which of these it is.

// selection is a set of devices by their names.
type selection map[string]Device

// Select returns the named devices in the order of the names. It is an error if
// there is none, one does not exist or one is named twice.
func (t Topology) Select(names []string) ([]Device, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no device named", t)
	}
	order := t.order()
	seen := make(map[string]bool, len(names))
	devices := make([]Device, 0, len(names))
	for _, name := range names {
		i, known := order[name]
		if !known {
			return nil, fmt.Errorf("%s: has no device %q", t, name)
		}
		if seen[name] {
			return nil, fmt.Errorf("%s: device %q is named twice", t, name)
		}
		seen[name] = true
		devices = append(devices, t.Devices[i])
	}
	return devices, nil
}

// selection is nil if Select refuses the names.
func (t Topology) selection(names []string) selection {
	devices, err := t.Select(names)
	if err != nil {
		return nil
	}
	set := make(selection, len(devices))
	for _, d := range devices {
		set[d.Name] = d
	}
	return set
}

// Adjacent tells whether two devices are directly linked.
func (t Topology) Adjacent(a, b string) bool {
	d, known := t.Device(a)
	return known && slices.Contains(d.Neighbors, b)
}

// Connected tells whether every device of the set can be reached from every
// other one over links between devices of the set.
func (t Topology) Connected(names []string) bool {
	set := t.selection(names)
	return set != nil && set.reachable(names[0]) == len(set)
}

// reachable counts the devices of the set that can be reached from one of them,
// itself included, without leaving the set.
func (s selection) reachable(from string) int {
	reached := map[string]bool{from: true}
	frontier := []string{from}
	for len(frontier) > 0 {
		var next []string
		for _, name := range frontier {
			for _, neighbor := range s[name].Neighbors {
				if _, inSet := s[neighbor]; inSet && !reached[neighbor] {
					reached[neighbor] = true
					next = append(next, neighbor)
				}
			}
		}
		frontier = next
	}
	return len(reached)
}

// Contiguous tells whether the set is a stretch of a ring, the place where the
// ring closes being like any other, or all of the ring. False for other kinds.
func (t Topology) Contiguous(names []string) bool {
	// The connected parts of a ring are its stretches.
	return t.Kind == Ring && t.Connected(names)
}

// IsBlock tells whether the set is a full rectangle of a mesh or torus, of the
// given number of rows and columns. To allow for either orientation, ask twice.
// In a torus a block may reach over the edges. False for other kinds.
func (t Topology) IsBlock(names []string, rows, cols int) bool {
	if t.Kind != Mesh && t.Kind != Torus || rows < 1 || cols < 1 || rows > t.Rows || cols > t.Cols {
		return false
	}
	set := t.selection(names)
	if len(set) != rows*cols {
		return false
	}
	occupied := make(map[Coordinates]bool, len(set))
	for _, d := range set {
		occupied[d.Coordinates] = true
	}
	for corner := range occupied {
		if t.blockAt(occupied, corner, rows, cols) {
			return true
		}
	}
	return false
}

// blockAt tells whether all the places of a block are occupied, given its top
// left corner.
func (t Topology) blockAt(occupied map[Coordinates]bool, corner Coordinates, rows, cols int) bool {
	for i := range rows * cols {
		at := Coordinates{Row: corner.Row + i/cols, Col: corner.Col + i%cols}
		if t.Kind == Torus {
			at = Coordinates{Row: at.Row % t.Rows, Col: at.Col % t.Cols}
		}
		if !occupied[at] {
			return false
		}
	}
	return true
}

// IsClique tells whether every device of the set is directly linked to every
// other one.
func (t Topology) IsClique(names []string) bool {
	set := t.selection(names)
	for a, d := range set {
		for b := range set {
			if a != b && !slices.Contains(d.Neighbors, b) {
				return false
			}
		}
	}
	return set != nil
}

// WholePairs tells whether the set consists of bridged pairs, with no device
// whose partner is missing. False for kinds other than BridgePairs.
func (t Topology) WholePairs(names []string) bool {
	return t.Kind == BridgePairs && t.selection(names).closed()
}

// WholeCouples tells whether the set consists of GPUs and NICs with the other
// one below the same PCIe root, with no device alone. False for kinds other than
// Couples.
func (t Topology) WholeCouples(names []string) bool {
	return t.Kind == Couples && t.selection(names).closed()
}

// closed tells whether the neighbours of all devices are in the set as well.
func (s selection) closed() bool {
	for _, d := range s {
		for _, neighbor := range d.Neighbors {
			if _, inSet := s[neighbor]; !inSet {
				return false
			}
		}
	}
	return s != nil
}
