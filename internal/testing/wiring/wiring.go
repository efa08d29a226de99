// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wiring checks sets of devices by the links between the devices. With it, tests check sets that a search found with an
// expression. The check is independent, because expressions read attributes and not links.
//
//	wiring.IsBlock(mesh, []string{"mla-0", "mla-1", "mla-4", "mla-5"}, 2, 2)
//
// Every check returns false for a set that is empty, has a device twice, or has an unknown device. [topology.Topology.Select]
// returns an error with the reason.
package wiring

import (
	"slices"

	"github.com/celset/celset/internal/topology"
)

// selection maps the names of the devices in a set to the devices.
type selection map[string]topology.Device

// selected returns the devices of a set, or nil if Select returns an error.
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

// Connected reports whether each device of the set can be reached from each other device, over links between devices of the
// set.
func Connected(t topology.Topology, names []string) bool {
	set := selected(t, names)
	return set != nil && set.reachable(names[0]) == len(set)
}

// reachable counts the devices of the set that can be reached from a device over devices of the set. The device itself counts.
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

// Contiguous reports whether the set is a stretch of a ring, or the whole ring. A stretch may cross the closing link. If the
// topology is not a ring, the result is false.
func Contiguous(t topology.Topology, names []string) bool {
	// In a ring, a set is connected if and only if it is a stretch.
	return t.Kind == topology.Ring && Connected(t, names)
}

// IsBlock reports whether the set is a full rectangle of rows x cols in a mesh or torus. A rectangle of cols x rows does not
// count. In a torus a rectangle may cross the edges. If the topology is not a mesh or torus, the result is false.
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

// blockAt reports whether the set has all devices of the rectangle with this top left corner.
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

// WholePairs reports whether the set consists of whole pairs at bridges. If the topology has no bridges, the result is false.
func WholePairs(t topology.Topology, names []string) bool {
	return t.Kind == topology.BridgePairs && selected(t, names).closed()
}

// WholeCouples reports whether the set consists of whole couples of a GPU and a NIC. If the topology has no couples, the result
// is false.
func WholeCouples(t topology.Topology, names []string) bool {
	return t.Kind == topology.Couples && selected(t, names).closed()
}

// closed reports whether the set has all neighbours of all its devices.
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
