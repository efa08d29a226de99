// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/celset/celset/cel/device/bitset"

// demands are numbers of devices that are still needed, of sets that have no device in common: the sum must not exceed the number of
// devices to be added. If it is this number, all other devices can be removed.
//
//	lists.range(16).all(t, devices.exists(d, d.tray == t))
//	devices.all(d, devices.filter(o, linked(d, o)).size() >= 2)
type demands struct {
	*State
	// of are the possible devices of which some are needed, and total is how many are.
	of    bitset.Set
	total int
}

// Demands returns no demands yet. They must be propagated, which gives back their memory.
func (s *State) Demands() *demands {
	d := &demands{State: s, of: s.Borrow(s.Domain)}
	d.of.Clear()
	return d
}

// Add demands some possible devices of a set, unless another demand is for one of them.
func (d *demands) Add(of bitset.Set, count int) {
	possible := d.Borrow(of)
	defer d.GiveBack(possible)
	possible.Keep(d.Domain)
	if count > 0 && !possible.Meets(d.of) {
		d.of.Join(possible)
		d.total += count
	}
}

// Propagate gives back the memory, and is false if more devices are needed than are to be added.
func (d *demands) Propagate() bool {
	defer d.GiveBack(d.of)
	if d.total == d.Left && d.Left > 0 {
		d.Keep(d.of)
	}
	return d.total <= d.Left
}

// demander is a condition that needs devices of a set.
type demander interface {
	// Demand returns the set, and how many more of its devices are needed. There is none if the number is not above zero.
	Demand(s *State) (of bitset.Set, count int)
}

// demandsOfConjuncts are those of conjuncts that count devices, each for itself.
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
