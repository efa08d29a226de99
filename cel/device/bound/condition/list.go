// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// A DeviceList is a list of devices in an expression: "devices" (the whole set), or a filter of such a list.
type DeviceList interface {
	// membership returns whether a device of the set is in the list, as the possible results of the filter.
	membership(s *propagate.State, device int) outcome.Outcome
}

// AllDevices is the list "devices".
type AllDevices struct{}

func (AllDevices) membership(*propagate.State, int) outcome.Outcome { return outcome.True }

// filtered is list.filter(x, keeps).
type filtered struct {
	list  DeviceList
	slot  int
	keeps propagate.Condition
}

func (f filtered) membership(s *propagate.State, device int) outcome.Outcome {
	if !s.Spend() {
		return outcome.Open
	}
	within := f.list.membership(s, device)
	if !within.May(outcome.True) {
		return within
	}
	before := s.Slots[f.slot]
	s.Slots[f.slot] = device
	result := within.Choose(f.keeps.Bound(s), outcome.False)
	s.Slots[f.slot] = before
	return result
}

// count bounds the number of devices in the list that satisfy holds. If holds is nil, count bounds the length of the list.
func count(s *propagate.State, list DeviceList, slot int, holds propagate.Condition) propagate.Counts {
	if p, over, ok := predicateOver(list, slot, holds); ok {
		return p.Row(s, over).Counts(s)
	}
	var t propagate.Counts
	for i := range s.Chosen.All() {
		o := filteredMembership(s, list, slot, holds, i)
		if o == outcome.True {
			t.Fewest++
		}
		if o.May(outcome.True) {
			t.Most++
		}
		t.Fails = t.Fails || o.May(outcome.Error)
	}
	// s.Left possible devices join the set. The counted number is smallest if devices that may be uncounted join first, and
	// greatest if devices that may be counted join first.
	surely, maybe, others := 0, 0, 0
	for i := range s.Domain.All() {
		o := filteredMembership(s, list, slot, holds, i)
		if o == outcome.True {
			surely++
		} else {
			others++
		}
		if o.May(outcome.True) {
			maybe++
		}
		t.Fails = t.Fails || s.Left > 0 && o.May(outcome.Error)
	}
	t.Fewest += max(0, s.Left-others)
	t.Most += min(s.Left, maybe)
	return t
}

// predicateOver returns the predicate that decides which devices of the whole set are counted. The predicate is either the
// filter of the list or holds. over is the index of the predicate's variable for these devices.
func predicateOver(list DeviceList, slot int, holds propagate.Condition) (p *propagate.Predicate, over int, ok bool) {
	if f, isFiltered := list.(filtered); isFiltered && holds == nil {
		list, slot, holds = f.list, f.slot, f.keeps
	}
	if _, all := list.(AllDevices); !all {
		return nil, 0, false
	}
	p, ok = holds.(*propagate.Predicate)
	return p, slot, ok && p.HasVariable(slot)
}

// filteredMembership returns whether a device is in list.filter(x, holds), for the slot of x.
func filteredMembership(s *propagate.State, list DeviceList, slot int, holds propagate.Condition, device int) outcome.Outcome {
	if holds == nil {
		return list.membership(s, device)
	}
	return filtered{list, slot, holds}.membership(s, device)
}

// size is the quantity list.size().
type size struct{ list DeviceList }

func (n size) Number(s *propagate.State) outcome.Number {
	t := count(s, n.list, 0, nil)
	return outcome.Number{Least: int64(t.Fewest), Most: int64(t.Most), Fails: t.Fails}
}

// NewFiltered returns list.filter(x, keeps) for the slot of x.
func NewFiltered(list DeviceList, slot int, keeps propagate.Condition) DeviceList {
	return filtered{list, slot, keeps}
}

// NewSize returns list.size().
func NewSize(list DeviceList) propagate.Quantity { return size{list} }
