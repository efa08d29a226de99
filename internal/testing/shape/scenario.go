// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"slices"

	"github.com/celset/celset/internal/topology"
)

// Scenario is one shape on one kind of hardware.
type Scenario struct {
	// Name is short and fit for the name of a benchmark: "grid-8x8-4".
	Name string
	// Topology has at most 64 devices.
	Topology topology.Topology
	// Requests are those of the claim, in order. The devices of a request are of
	// one driver, and no two requests are for the same driver.
	Requests []Request
	// Expression is true for the sets that have the shape, in CEL.
	Expression string
	// Occupancies are in the order of [OccupancyNames]. Where one can't exist it is left
	// out: of 16 devices 16 are either all free, or too few are.
	Occupancies []Occupancy

	// holds judges a set that has as many devices as were requested.
	holds func(topology.Topology, []string) bool
	// search returns the first set of free devices that has the shape, an empty one
	// if there is none, and its steps.
	search func(free Set) (Set, int)
}

// Request is a request of a claim.
type Request struct {
	Name string
	// Driver is also the name of the device class.
	Driver string
	Count  int
}

// All is the set of all devices.
func (s Scenario) All() Set { return first(len(s.Topology.Devices)) }

// Wanted is the number of devices in an answer.
func (s Scenario) Wanted() int {
	wanted := 0
	for _, r := range s.Requests {
		wanted += r.Count
	}
	return wanted
}

// OfDriver is the set of the devices of a driver.
func (s Scenario) OfDriver(driver string) Set {
	var set Set
	for i, d := range s.Topology.Devices {
		if d.Driver == driver {
			set |= bit(i)
		}
	}
	return set
}

// Enough tells whether each request finds as many free devices as it wants.
func (s Scenario) Enough(free Set) bool {
	return !slices.ContainsFunc(s.Requests, func(r Request) bool {
		return (free & s.OfDriver(r.Driver)).Len() < r.Count
	})
}

// Names are the names of the devices of a set, in ascending order of devices.
func (s Scenario) Names(set Set) []string {
	names := make([]string, 0, set.Len())
	for i := range set.All() {
		names = append(names, s.Topology.Devices[i].Name)
	}
	return names
}

// Holds tells whether the named devices are as many as were requested and have
// the shape. It judges by the wiring of the topology and not by the expression.
func (s Scenario) Holds(names []string) bool {
	devices, err := s.Topology.Select(names)
	if err != nil {
		return false
	}
	count := make(map[string]int, len(s.Requests))
	for _, d := range devices {
		count[d.Driver]++
	}
	for _, r := range s.Requests {
		if count[r.Driver] != r.Count {
			return false
		}
	}
	return len(devices) == s.Wanted() && s.holds(s.Topology, names)
}

// HandWritten returns the first set of free devices that has the shape, and the
// steps that the search for it took. The set is empty if there is none.
func (s Scenario) HandWritten(free Set) (Set, int) { return s.search(free) }

// everyHasTwoNeighbours tells whether each device of the set is linked to at least
// two others of it.
func everyHasTwoNeighbours(t topology.Topology, names []string) bool {
	devices, err := t.Select(names)
	if err != nil {
		return false
	}
	inSet := make(map[string]bool, len(names))
	for _, name := range names {
		inSet[name] = true
	}
	return !slices.ContainsFunc(devices, func(d topology.Device) bool {
		linked := 0
		for _, neighbor := range d.Neighbors {
			if inSet[neighbor] {
				linked++
			}
		}
		return linked < 2
	})
}

// contiguousWithoutWrap tells whether the set is a stretch of a ring that does not
// reach over the place where the ring closes.
func contiguousWithoutWrap(t topology.Topology, names []string) bool {
	last := len(t.Devices) - 1
	wraps := slices.Contains(names, t.Devices[0].Name) && slices.Contains(names, t.Devices[last].Name)
	return t.Contiguous(names) && (!wraps || len(names) == len(t.Devices))
}
