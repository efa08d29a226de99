// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// greatest is list.map(x, value).max(), or with negated its min().
type greatest struct {
	mapped
	negated bool
}

func (n greatest) number(s *state) number {
	var e extreme
	look := func(devices bitset.Set, chosen bool) {
		for i := range devices.All() {
			value, within := n.of(s, i)
			if n.negated {
				value = value.negate()
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
	if n.negated {
		result = result.negate()
	}
	return result
}

// extreme bounds the greatest of some values.
type extreme struct {
	open, fails bool
	// certain: at least one value is there for sure; least is then a lower bound of
	// the greatest. most is the upper bound, valid if any value may be there.
	certain, any bool
	least, most  int64
	// floor is the least that any value may be.
	floor int64
	// joining are the least values of the devices that may join the set; others are
	// those of them that may not be in the list.
	joining []int64
	others  int
}

func (e *extreme) add(value number, within Outcome, chosen bool) bool {
	e.fails = e.fails || within.may(Error) || within.may(True) && value.fails
	if !chosen && (within != True || value.isNever()) {
		e.others++
	}
	if !within.may(True) || value.isNever() {
		return true
	}
	if value.open {
		e.open = true
		return false
	}
	if !e.any || value.most > e.most {
		e.most = value.most
	}
	if !e.any || value.least < e.floor {
		e.floor = value.least
	}
	e.any = true
	switch {
	case within != True:
	case !chosen:
		e.joining = append(e.joining, value.least)
	case !e.certain || value.least > e.least:
		e.certain, e.least = true, value.least
	}
	return true
}

// result: of the devices that join, left of them, those that are certainly in the
// list are at best the smallest.
func (e *extreme) result(left int) number {
	switch {
	case e.open:
		return openNumber
	case !e.any:
		return never
	}
	joining := left - e.others
	if joining > 0 && joining <= len(e.joining) {
		slices.Sort(e.joining)
		if least := e.joining[joining-1]; !e.certain || least > e.least {
			e.certain, e.least = true, least
		}
	}
	if !e.certain {
		// The list may be empty, and that is an error.
		return number{least: e.floor, most: e.most, fails: true}
	}
	return number{least: e.least, most: e.most, fails: e.fails}
}

// total is list.map(x, value).sum(). What is not in the list adds nothing.
type total struct{ mapped }

// adds is what a device adds if it is in the set.
func (n total) adds(s *state, device int) number {
	value, within := n.of(s, device)
	if within == True {
		return value
	}
	result := exactly(0)
	if within.may(True) {
		result = either(value, result)
	}
	result.fails = result.fails || within.may(Error)
	return result
}

func (n total) number(s *state) number {
	result := exactly(0)
	for i := range s.Chosen.All() {
		value := n.adds(s, i)
		if isFar(value) {
			return anyNumber
		}
		if result = combine(result, value, addition); result.open {
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
		case value.open:
			return openNumber
		case value.isNever():
			result.fails = true
		case isFar(value):
			return anyNumber
		default:
			least, most = append(least, value.least), append(most, value.most)
			result.fails = result.fails || value.fails
		}
	}
	if len(least) < s.Left {
		return openNumber
	}
	slices.Sort(least)
	slices.Sort(most)
	sum := number{}
	for i := range s.Left {
		sum.least += least[i]
		sum.most += most[len(most)-1-i]
	}
	return combine(result, sum, addition)
}
