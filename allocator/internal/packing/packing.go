// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package packing finds out how many of some sets of devices can be allocated at the same time. Such sets have no common device
// and, if devices share counters, do not exceed the counters.
//
// Most uses branch and bound. The worst case takes exponential time, so the caller limits the work ([Work]). When the limit is
// reached, Most returns the best packing so far and reports that a better packing may exist.
package packing

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// Work is the number of set members that may still be examined. Several packings can share it.
type Work struct{ Left int64 }

// do subtracts members from the work that is left. It returns false if too little was left.
func (w *Work) do(members int) bool {
	if w.Left < int64(members) {
		w.Left = 0
		return false
	}
	w.Left -= int64(members)
	return true
}

// Reservations decides whether sets without common devices can be taken together. The last set taken is given back first.
type Reservations interface {
	// Take takes a set and returns true, if the set is available.
	Take(set []int) bool
	GiveBack(set []int)
}

// packer is the state of one packing. A set is identified by its index in sets.
type packer struct {
	sets         [][]int
	reservations Reservations
	work         *Work
	// size is the number of devices in the smallest of the sets.
	size int
	// degrees is a buffer for [packer.tightest]: the number of sets that contain each device.
	degrees      []int
	chosen, best []int
}

// Most returns the indices of as many sets as possible that have no common device. The members of a set are positions below
// devices. isMost is true if no larger number of sets is possible. reservations may be nil if only common devices matter.
//
// Whatever the limit, Most first takes each set in order that fits (first fit). The result never has fewer sets.
func Most(sets [][]int, devices int, reservations Reservations, work *Work) (chosen []int, isMost bool) {
	sets, places := withoutDuplicates(sets)
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

// withoutDuplicates removes empty sets, and repeated devices in a set. places holds the original index of each kept set.
func withoutDuplicates(sets [][]int) (kept [][]int, places []int) {
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

// keep makes the current choice of sets the best if it has more sets.
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

// takeInOrder takes each set in order that fits (first fit), and stores the choice.
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

// takeTightest always takes the set whose devices are in the fewest sets. It returns false if too little work was left.
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

// tightest returns the device that is in the fewest sets, but in at least one. devices counts the devices in all sets.
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

// disjoint returns those sets that have no device of the set with.
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

// branch tries all ways to add sets of alive to the current choice. It returns false if too little work was left.
//
// A device is either in exactly one chosen set or in none. branch distinguishes these cases for the device in the fewest sets,
// because this device has the fewest cases. It cuts a branch if too few devices are left to exceed the best choice.
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
