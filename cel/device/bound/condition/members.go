// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// members are the devices of the set that are in a list (chosen) or may join the list (possible).
type members struct {
	chosen, possible bitset.Set
	// fewest and most bound the number of possible members that join the set.
	fewest, most int
}

// membersOf returns the members of a list, in sets borrowed from s. ok is false if it is undecided whether a device is in the
// list.
func membersOf(s *propagate.State, list DeviceList) (m members, ok bool) {
	m = members{chosen: s.Borrow(s.Chosen), possible: s.Borrow(s.Domain)}
	if s.Left <= 0 {
		m.possible.Clear()
	}
	switch _, all := list.(AllDevices); {
	case all:
	case m.keepRow(s, list):
	default:
		for _, devices := range []bitset.Set{m.chosen, m.possible} {
			for i := range devices.All() {
				switch list.membership(s, i) {
				case outcome.True:
				case outcome.False:
					devices.Remove(i)
				default:
					return m, false
				}
			}
		}
	}
	m.fewest, m.most = s.JoiningOf(m.possible)
	if m.most == 0 {
		m.possible.Clear()
	}
	return m, true
}

// keepRow removes the devices that are not in the list. It returns false, and removes nothing, unless a predicate of single
// devices decides for each device whether it is in the list.
func (m members) keepRow(s *propagate.State, list DeviceList) bool {
	p, over, ok := predicateOver(list, 0, nil)
	if !ok || len(p.Slots) != 1 {
		return false
	}
	row := p.Row(s, over)
	if !row.Exact || !s.Spend() {
		return false
	}
	m.chosen.Keep(row.Yes)
	m.possible.Keep(row.Yes)
	return true
}

// narrowToList removes the devices that the list distinguishes from a device.
func narrowToList(s *propagate.State, list DeviceList, device int, to bitset.Set) bool {
	if _, all := list.(AllDevices); all {
		return true
	}
	p, over, ok := predicateOver(list, 0, nil)
	if !ok || len(p.Slots) != 1 {
		return false
	}
	row := p.Row(s, over)
	switch {
	case !row.Exact:
		return false
	case row.Yes.Has(device):
		to.Keep(row.Yes)
	default:
		to.Drop(row.Yes)
	}
	return true
}

// listMembers returns the members of a list. The caller must call giveBackMembers when it no longer needs them. ok is false if it is
// not decided whether a device is in the list. For the whole set, listMembers does not copy the sets.
func listMembers(s *propagate.State, list DeviceList) (m members, ok bool) {
	if _, all := list.(AllDevices); all {
		left := min(max(0, s.Left), s.Domain.Count())
		return members{s.Chosen, s.Domain, left, left}, true
	}
	return membersOf(s, list)
}

func giveBackMembers(s *propagate.State, list DeviceList, m members) {
	if _, all := list.(AllDevices); !all {
		m.giveBack(s)
	}
}

func (m members) giveBack(s *propagate.State) {
	s.GiveBack(m.chosen)
	s.GiveBack(m.possible)
}

// remove removes the possible members that are not in keep from the domain.
func (m members) remove(s *propagate.State, keep bitset.Set) {
	gone := s.Borrow(m.possible)
	gone.Drop(keep)
	s.Drop(gone)
	s.GiveBack(gone)
}
