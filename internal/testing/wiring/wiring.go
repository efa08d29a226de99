// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wiring checks sets of devices by the links between them. It is an independent check of sets that were found with an
// expression, which reads attributes.
//
//	wiring.IsBlock(mesh, []string{"mla-0", "mla-1", "mla-4", "mla-5"}, 2, 2)
//
// Every check rejects a set that is empty, contains a device twice, or contains an unknown device. The error of
// [topology.Topology.Select] gives the reason.
package wiring

import (
	"slices"

	"github.com/celset/celset/internal/topology"
)

// selection maps names to the devices of a set.
type selection map[string]topology.Device

// selected returns the devices of a set, or nil if Select rejects the names.
func selected(t topology.Topology, names []string) selection {
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

// Connected reports whether all devices of the set are connected over links between devices of the set.
func Connected(t topology.Topology, names []string) bool {
	set := selected(t, names)
	return set != nil && set.reachable(names[0]) == len(set)
}

// reachable counts the devices that can be reached from a device within the set, including the device.
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

// Contiguous reports whether the set is a stretch of a ring, or the whole ring. A stretch may cross the closing link. The result
// is false for other kinds.
func Contiguous(t topology.Topology, names []string) bool {
	// The connected parts of a ring are its stretches.
	return t.Kind == topology.Ring && Connected(t, names)
}

// IsBlock reports whether the set is a full rectangle of rows x cols in a mesh or torus. It checks one orientation. In a torus a
// block may cross the edges. The result is false for other kinds.
func IsBlock(t topology.Topology, names []string, rows, cols int) bool {
	if t.Kind != topology.Mesh && t.Kind != topology.Torus || rows < 1 || cols < 1 || rows > t.Rows || cols > t.Cols {
		return false
	}
	set := selected(t, names)
	if len(set) != rows*cols {
		return false
	}
	occupied := make(map[topology.Coordinates]bool, len(set))
	for _, d := range set {
		occupied[d.Coordinates] = true
	}
	for corner := range occupied {
		if blockAt(t, occupied, corner, rows, cols) {
			return true
		}
	}
	return false
}

// blockAt reports whether all positions of the block with this top left corner are occupied.
func blockAt(t topology.Topology, occupied map[topology.Coordinates]bool, corner topology.Coordinates, rows, cols int) bool {
	for i := range rows * cols {
		at := topology.Coordinates{Row: corner.Row + i/cols, Col: corner.Col + i%cols}
		if t.Kind == topology.Torus {
			at = topology.Coordinates{Row: at.Row % t.Rows, Col: at.Col % t.Cols}
		}
		if !occupied[at] {
			return false
		}
	}
	return true
}

// IsClique reports whether every two devices of the set are linked.
func IsClique(t topology.Topology, names []string) bool {
	set := selected(t, names)
	for a, d := range set {
		for b := range set {
			if a != b && !slices.Contains(d.Neighbors, b) {
				return false
			}
		}
	}
	return set != nil
}

// WholePairs reports whether the set consists of whole bridged pairs. The result is false for other kinds.
func WholePairs(t topology.Topology, names []string) bool {
	return t.Kind == topology.BridgePairs && selected(t, names).closed()
}

// WholeCouples reports whether the set consists of whole couples of a GPU and a NIC. The result is false for other kinds.
func WholeCouples(t topology.Topology, names []string) bool {
	return t.Kind == topology.Couples && selected(t, names).closed()
}

// closed reports whether the set contains the neighbours of all its devices.
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
