// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/celset/celset/cel/device/bitset"

// demands adds up the numbers of devices that are still needed from disjoint sets. The sum must not exceed the number of devices
// to add. If both are equal, all other devices are removed.
//
//	lists.range(16).all(t, devices.exists(d, d.tray == t))
//	devices.all(d, devices.filter(o, linked(d, o)).size() >= 2)
type demands struct {
	*State
	// of has the possible devices that the demands are for. total is the sum of the demands.
	of    bitset.Set
	total int
}

// Demands returns an empty sum. The caller must call Propagate, which frees its memory.
func (s *State) Demands() *demands {
	d := &demands{State: s, of: s.Borrow(s.Domain)}
	d.of.Clear()
	return d
}

// Add adds a demand for count devices of a set, unless the set overlaps with an earlier demand.
func (d *demands) Add(of bitset.Set, count int) {
	possible := d.Borrow(of)
	defer d.GiveBack(possible)
	possible.Keep(d.Domain)
	if count > 0 && !possible.Meets(d.of) {
		d.of.Join(possible)
		d.total += count
	}
}

// Propagate frees the memory and returns false if more devices are needed than may be added.
func (d *demands) Propagate() bool {
	defer d.GiveBack(d.of)
	if d.total == d.Left && d.Left > 0 {
		d.Keep(d.of)
	}
	return d.total <= d.Left
}

// A demander is a condition that may need more devices of a set.
type demander interface {
	// Demand returns the set and the number of its devices that are still needed. Zero or less means no demand.
	Demand(s *State) (of bitset.Set, count int)
}

// demandsOfConjuncts adds up the demands of the active conjuncts. It returns false if they need too many devices.
func (s *State) demandsOfConjuncts() bool {
	var d *demands
	for _, c := range s.active {
		c, ok := c.(demander)
		if !ok {
			continue
		}
		if of, count := c.Demand(s); count > 0 {
			if d == nil {
				d = s.Demands()
			}
			d.Add(of, count)
		}
	}
	return d == nil || d.Propagate()
}
