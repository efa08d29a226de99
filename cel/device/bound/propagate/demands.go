// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/celset/celset/cel/device/bitset"

// demands adds up the numbers of devices that several conditions still need from disjoint sets. The sum must not exceed the
// number of devices left to choose. If both numbers are equal, devices outside of these sets are removed.
//
//	lists.range(16).all(t, devices.exists(d, d.tray == t))
//	devices.all(d, devices.filter(o, linked(d, o)).size() >= 2)
type demands struct {
	*State
	// of is the union of the possible devices in the sets of the demands. total is the sum of the needed numbers.
	of    bitset.Set
	total int
}

// Demands returns an empty sum of demands. The caller must call Propagate, which also frees the memory of the sum.
func (s *State) Demands() *demands {
	d := &demands{State: s, of: s.Borrow(s.Domain)}
	d.of.Clear()
	return d
}

// Add adds a demand for count devices of a set. It ignores the demand if the set overlaps with the set of an earlier demand.
func (d *demands) Add(of bitset.Set, count int) {
	possible := d.Borrow(of)
	defer d.GiveBack(possible)
	possible.Keep(d.Domain)
	if count > 0 && !possible.Meets(d.of) {
		d.of.Join(possible)
		d.total += count
	}
}

// Propagate frees the memory of the sum. It returns false if the demands need more devices than are left to choose.
func (d *demands) Propagate() bool {
	defer d.GiveBack(d.of)
	if d.total == d.Left && d.Left > 0 {
		d.Keep(d.of)
	}
	return d.total <= d.Left
}

// A demander is a condition that may require a number of further devices from a set.
type demander interface {
	// Demand returns a set and the number of its devices that the condition still needs. If count is zero or less, it needs
	// none.
	Demand(s *State) (of bitset.Set, count int)
}

// demandsOfConjuncts adds up the demands of the active conjuncts. It returns false if they need more devices than are left to
// choose.
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
