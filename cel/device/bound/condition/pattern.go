// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// pattern is the condition that some devices of the set have given relations to each other and to the devices of outer
// variables. Examples are a chain, a square, and a path over a third device.
//
//	devices.exists(a, devices.exists(b, devices.exists(c, linked(a, b) && linked(b, c))))
//
// The search assigns a device to one variable after the other. A candidate must satisfy the relations with earlier variables. A
// match must not need more than s.Left devices that are not chosen.
type pattern struct {
	// variables are the slots of the variables that the search assigns.
	variables []int
	parts     []*propagate.Predicate
	// general is the condition as written. It replaces the pattern if a relation may fail.
	general propagate.Condition
}

// maxTries limits the devices that one search tries. After maxTries devices the search returns some, which means undecided.
const maxTries = 1 << 12

// newPattern recognizes devices.exists over a conjunction of relations and further such quantifiers. It returns general for
// other conditions.
func newPattern(slot int, holds, general propagate.Condition) propagate.Condition {
	p := &pattern{variables: []int{slot}, general: general}
	if !p.collect(holds) || len(p.variables)+len(p.parts) < 3 {
		return general
	}
	return p
}

// collect adds the variables and relations of a condition to the pattern. It returns false if the condition is not a
// conjunction of relations and quantifiers.
func (n *pattern) collect(c propagate.Condition) bool {
	switch c := c.(type) {
	case and:
		return n.collect(c.left) && n.collect(c.right)
	case *propagate.Predicate:
		n.parts = append(n.parts, c)
		return true
	case *pattern:
		n.variables, n.parts = append(n.variables, c.variables...), append(n.parts, c.parts...)
		return true
	case *cardinality:
		if c.Limits != (outcome.Limits{Least: 1, Most: outcome.Unlimited}) {
			return false
		}
		n.variables, n.parts = append(n.variables, c.slot), append(n.parts, c.predicate)
		return true
	default:
		return false
	}
}

func (n *pattern) Bound(s *propagate.State) outcome.Outcome {
	switch n.find(s, s.Left) {
	case none:
		return outcome.False
	case some:
		if n.mayFail(s) {
			return outcome.Open
		}
		return outcome.True | outcome.False
	case surely:
		return outcome.True
	default:
		return n.general.Bound(s)
	}
}

// mayFail reports whether a relation may fail for devices of the set. find skips the relations of many devices. But if no
// devices match, CEL's result is the error of a failing relation, so callers must check mayFail.
func (n *pattern) mayFail(s *propagate.State) bool {
	all := s.Borrow(s.Chosen)
	defer s.GiveBack(all)
	all.Join(s.Domain)
	return slices.ContainsFunc(n.parts, func(p *propagate.Predicate) bool { return !p.IsExactFor(s, all) })
}

func (n *pattern) Negation() propagate.Condition { return NewNot(n.general) }

// find searches for a match with at most left devices that are not chosen.
func (n *pattern) find(s *propagate.State, left int) matchResult {
	for _, p := range n.parts {
		// A relation that only has outer variables is the same for all matches, so it is checked once.
		if slices.ContainsFunc(p.Slots, func(slot int) bool { return slices.Contains(n.variables, slot) }) {
			continue
		}
		switch p.Bound(s) {
		case outcome.True:
		case outcome.False:
			return none
		default:
			return fails
		}
	}
	m := &patternSearch{pattern: n, State: s, left: left}
	return m.from(0)
}

// A patternSearch is a search for a pattern.
type patternSearch struct {
	*pattern
	*propagate.State
	// left is the number of devices outside of the chosen ones that the match may still add. tries counts the tried devices.
	left, tries int
	added       []int
}

// from assigns devices to the variables from index place on.
func (m *patternSearch) from(place int) matchResult {
	if place == len(m.variables) {
		if len(m.added) == 0 {
			return surely
		}
		return some
	}
	candidates, ok := m.candidates(place)
	if !ok {
		return fails
	}
	defer m.GiveBack(candidates)
	best := none
	for _, chosen := range [2]bool{true, false} {
		for i := range candidates.All() {
			if m.Chosen.Has(i) != chosen {
				continue
			}
			if m.tries++; m.tries > maxTries || !m.Spend() {
				return some
			}
			if found := m.with(place, i, chosen || slices.Contains(m.added, i)); found > best {
				if best = found; best >= surely {
					return best
				}
			}
			if best == some && !chosen {
				return best
			}
		}
	}
	return best
}

// with assigns a device to the variable at index place, and then searches for the later variables. there is true if the device
// is chosen or the match already added it.
func (m *patternSearch) with(place, device int, there bool) matchResult {
	if !there && len(m.added) >= m.left {
		return none
	}
	if !there {
		m.added = append(m.added, device)
		defer func() { m.added = m.added[:len(m.added)-1] }()
	}
	m.Slots[m.variables[place]] = device
	return m.from(place + 1)
}

// candidates returns the devices for the variable at index place that satisfy the relations with earlier variables, in a
// borrowed set. It returns false if a relation may fail.
func (m *patternSearch) candidates(place int) (bitset.Set, bool) {
	candidates := m.Borrow(m.Chosen)
	if m.left > 0 {
		candidates.Join(m.Domain)
	}
	slot, later := m.variables[place], m.variables[place+1:]
	for _, p := range m.parts {
		if !p.HasVariable(slot) || slices.ContainsFunc(p.Slots, func(o int) bool { return slices.Contains(later, o) }) {
			continue
		}
		r := p.Row(m.State, slot)
		if !r.Exact {
			m.GiveBack(candidates)
			return nil, false
		}
		candidates.Keep(r.Yes)
	}
	return candidates, true
}
