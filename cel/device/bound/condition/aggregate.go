// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// greatest is the quantity list.map(x, value).max(), or list.map(x, value).min() if Negated is set.
type greatest struct {
	Mapped
	Negated bool
}

func (n greatest) Number(s *propagate.State) outcome.Number {
	var e extreme
	look := func(devices bitset.Set, chosen bool) {
		for i := range devices.All() {
			value, within := n.of(s, i)
			if n.Negated {
				value = value.Negate()
			}
			if !e.add(value, within, chosen) {
				return
			}
		}
	}
	look(s.Chosen, true)
	if s.Left > 0 {
		look(s.Domain, false)
	}
	result := e.result(s.Left)
	if n.Negated {
		result = result.Negate()
	}
	return result
}

// extreme accumulates, device by device, the bounds of the greatest value in a list.
type extreme struct {
	open, fails bool
	// certain means that the list surely has a value. Only then is least a lower bound of the greatest value. any means that
	// the list may have a value. Only then is most an upper bound of the greatest value.
	certain, any bool
	least, most  int64
	// floor is the smallest value that may be in the list.
	floor int64
	// joining has the smallest value of each possible device that is surely in the list once the device is chosen. others
	// counts the possible devices that may be chosen without being in the list.
	joining []int64
	others  int
}

func (e *extreme) add(value outcome.Number, within outcome.Outcome, chosen bool) bool {
	e.fails = e.fails || within.May(outcome.Error) || within.May(outcome.True) && value.Fails
	if !chosen && (within != outcome.True || value.IsNever()) {
		e.others++
	}
	if !within.May(outcome.True) || value.IsNever() {
		return true
	}
	if value.Open {
		e.open = true
		return false
	}
	if !e.any || value.Most > e.most {
		e.most = value.Most
	}
	if !e.any || value.Least < e.floor {
		e.floor = value.Least
	}
	e.any = true
	switch {
	case within != outcome.True:
	case !chosen:
		e.joining = append(e.joining, value.Least)
	case !e.certain || value.Least > e.least:
		e.certain, e.least = true, value.Least
	}
	return true
}

// result returns the bounds of the greatest value after the search has chosen left more devices. At least left-others of the
// new devices are in joining. In the worst case, they are the devices with the smallest values.
func (e *extreme) result(left int) outcome.Number {
	switch {
	case e.open:
		return outcome.OpenNumber
	case !e.any:
		return outcome.Never
	}
	joining := left - e.others
	if joining > 0 && joining <= len(e.joining) {
		slices.Sort(e.joining)
		if least := e.joining[joining-1]; !e.certain || least > e.least {
			e.certain, e.least = true, least
		}
	}
	if !e.certain {
		// The list may be empty, and CEL's max and min fail for an empty list.
		return outcome.Number{Least: e.floor, Most: e.most, Fails: true}
	}
	return outcome.Number{Least: e.least, Most: e.most, Fails: e.fails}
}

// total is the quantity list.map(x, value).sum(). A device outside of the list adds zero to the sum.
type total struct{ Mapped }

// adds returns the amount that a device adds to the sum if the device is in the set.
func (n total) adds(s *propagate.State, device int) outcome.Number {
	value, within := n.of(s, device)
	if within == outcome.True {
		return value
	}
	result := outcome.Exactly(0)
	if within.May(outcome.True) {
		result = outcome.Either(value, result)
	}
	result.Fails = result.Fails || within.May(outcome.Error)
	return result
}

func (n total) Number(s *propagate.State) outcome.Number {
	result := outcome.Exactly(0)
	for i := range s.Chosen.All() {
		value := n.adds(s, i)
		if outcome.IsFar(value) {
			return outcome.AnyNumber
		}
		if result = outcome.Combine(result, value, outcome.Addition); result.Open {
			return result
		}
	}
	if s.Left == 0 {
		return result
	}
	var least, most []int64
	for i := range s.Domain.All() {
		value := n.adds(s, i)
		switch {
		case value.Open:
			return outcome.OpenNumber
		case value.IsNever():
			result.Fails = true
		case outcome.IsFar(value):
			return outcome.AnyNumber
		default:
			least, most = append(least, value.Least), append(most, value.Most)
			result.Fails = result.Fails || value.Fails
		}
	}
	if len(least) < s.Left {
		return outcome.OpenNumber
	}
	slices.Sort(least)
	slices.Sort(most)
	sum := outcome.Number{}
	for i := range s.Left {
		sum.Least += least[i]
		sum.Most += most[len(most)-1-i]
	}
	return outcome.Combine(result, sum, outcome.Addition)
}

// NewGreatest returns list.map(x, value).max().
func NewGreatest(m Mapped) propagate.Quantity { return greatest{Mapped: m} }

// NewLeast returns list.map(x, value).min().
func NewLeast(m Mapped) propagate.Quantity { return greatest{Mapped: m, Negated: true} }

// NewTotal returns list.map(x, value).sum(). A sum that adds 1 for each device with a property becomes a count of these
// devices.
func NewTotal(m Mapped) propagate.Quantity {
	choice, ok := m.Value.(conditionalNumber)
	if !ok || choice.Yes != (Constant{1}) || choice.No != (Constant{0}) {
		return total{m}
	}
	return size{filtered{m.List, m.Slot, choice.When}}
}
