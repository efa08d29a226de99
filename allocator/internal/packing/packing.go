// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package packing finds out how many sets of devices can be had at the same time: sets that have no
// device in common, and, if devices share counters, that can be had beside each other.
//
// Most looks for the most of them by branch and bound. In the worst case that takes exponential
// time, so it has an amount of work that it may do ([Work]). When that is used up, what was found is
// the answer, and it is said that there may be more.
package packing

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// Work is how many members of sets may still be looked at. Who packs several times can share it.
type Work struct{ Left int64 }

// do reports whether there was enough left.
func (w *Work) do(members int) bool {
	if w.Left < int64(members) {
		w.Left = 0
		return false
	}
	w.Left -= int64(members)
	return true
}

// Reservations tells which sets can be had beside those that were taken, where that is not said by
// their members alone. It is a stack: what was taken last is given back first.
type Reservations interface {
	// Take takes a set if it can be had.
	Take(set []int) bool
	GiveBack(set []int)
}

// packer is the state of one search. Sets are known by their place in sets.
type packer struct {
	sets         [][]int
	reservations Reservations
	work         *Work
	// size is the number of devices in the smallest set.
	size int
	// degrees is memory for [packer.tightest]: in how many sets each device is.
	degrees      []int
	chosen, best []int
}

// Most chooses sets of devices, given by their positions below devices, of which no two have a device
// in common. isMost tells that there are no more. reservations are nil if the members say all.
//
// The result is never less than what is found by taking one set after the other in order, as long as
// they can be had: that much is done in any case.
func Most(sets [][]int, devices int, reservations Reservations, work *Work) (chosen []int, isMost bool) {
	sets, places := withoutRepeats(sets)
	if len(sets) == 0 {
		return nil, true
	}
	p := &packer{sets: sets, reservations: reservations, work: work, size: len(sets[0]), degrees: make([]int, devices)}
	all := make([]int, len(sets))
	for i := range sets {
		all[i], p.size = i, min(p.size, len(sets[i]))
	}
	p.takeInOrder(all)
	isMost = p.takeTightest(all) && p.branch(all)
	for _, i := range p.best {
		chosen = append(chosen, places[i])
	}
	slices.Sort(chosen)
	return chosen, isMost
}

// withoutRepeats drops empty sets, and has each device in a set once.
func withoutRepeats(sets [][]int) (kept [][]int, places []int) {
	for i, set := range sets {
		if !isAscending(set) {
			set = slices.Compact(slices.Sorted(slices.Values(set)))
		}
		if len(set) > 0 {
			kept, places = append(kept, set), append(places, i)
		}
	}
	return kept, places
}

func isAscending(set []int) bool {
	for i := 1; i < len(set); i++ {
		if set[i-1] >= set[i] {
			return false
		}
	}
	return true
}

func (p *packer) take(set int) bool {
	if p.reservations != nil && !p.reservations.Take(p.sets[set]) {
		return false
	}
	p.chosen = append(p.chosen, set)
	return true
}

func (p *packer) giveBack() {
	last := p.chosen[len(p.chosen)-1]
	p.chosen = p.chosen[:len(p.chosen)-1]
	if p.reservations != nil {
		p.reservations.GiveBack(p.sets[last])
	}
}

// keep remembers what is chosen if it is the most so far.
func (p *packer) keep() {
	if len(p.chosen) > len(p.best) {
		p.best = append(p.best[:0], p.chosen...)
	}
}

func (p *packer) giveAllBack() {
	p.keep()
	for len(p.chosen) > 0 {
		p.giveBack()
	}
}

// takeInOrder is first fit.
func (p *packer) takeInOrder(sets []int) {
	taken := bitset.New(len(p.degrees))
	for _, set := range sets {
		if slices.ContainsFunc(p.sets[set], taken.Has) || !p.take(set) {
			continue
		}
		for _, position := range p.sets[set] {
			taken.Add(position)
		}
	}
	p.giveAllBack()
}

// takeTightest takes the set next whose devices are in the fewest others. It is false if there was
// not enough work left.
func (p *packer) takeTightest(alive []int) bool {
	defer p.giveAllBack()
	for len(alive) > 0 {
		if !p.work.do(3 * len(alive) * p.size) {
			return false
		}
		p.tightest(alive)
		next, least := alive[0], 0
		for i, set := range alive {
			sum := 0
			for _, position := range p.sets[set] {
				sum += p.degrees[position]
			}
			if i == 0 || sum < least {
				next, least = set, sum
			}
		}
		if p.take(next) {
			alive = p.disjoint(alive, next)
		} else {
			alive = slices.DeleteFunc(slices.Clone(alive), func(set int) bool { return set == next })
		}
	}
	return true
}

// tightest is the device that is in the fewest sets, but in one, and how many devices are in any.
func (p *packer) tightest(alive []int) (position, devices int) {
	clear(p.degrees)
	for _, set := range alive {
		for _, member := range p.sets[set] {
			p.degrees[member]++
		}
	}
	position = -1
	for i, degree := range p.degrees {
		if degree == 0 {
			continue
		}
		devices++
		if position < 0 || degree < p.degrees[position] {
			position = i
		}
	}
	return position, devices
}

// disjoint are the sets that have no device in common with one.
func (p *packer) disjoint(alive []int, with int) []int {
	taken := bitset.New(len(p.degrees))
	for _, position := range p.sets[with] {
		taken.Add(position)
	}
	var rest []int
	for _, set := range alive {
		if !slices.ContainsFunc(p.sets[set], taken.Has) {
			rest = append(rest, set)
		}
	}
	return rest
}

// branch tries what can be chosen of the sets besides what is. It is false if there was not enough
// work left.
//
// A device is either in one of the chosen sets or in none. The one with the fewest sets leaves the
// fewest cases. What has too few devices left to become more than the best is cut.
func (p *packer) branch(alive []int) bool {
	p.keep()
	for len(alive) > 0 {
		if !p.work.do(2 * len(alive) * p.size) {
			return false
		}
		position, devices := p.tightest(alive)
		if len(p.chosen)+min(devices/p.size, len(alive)) <= len(p.best) {
			return true
		}
		var without []int
		for _, set := range alive {
			if !slices.Contains(p.sets[set], position) {
				without = append(without, set)
				continue
			}
			if !p.take(set) {
				continue
			}
			done := p.work.do(len(alive)*p.size) && p.branch(p.disjoint(alive, set))
			p.giveBack()
			if !done {
				return false
			}
		}
		alive = without
	}
	return true
}
