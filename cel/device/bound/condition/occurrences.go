// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// occurrences is the global cardinality constraint: it limits how often each value occurs among the devices of the set. It
// represents conditions on all devices that count the devices with the same value:
//
//	devices.all(d, devices.filter(o, o.tray == d.tray).size() == 4)
//	devices.all(a, devices.all(b, a == b || a.tray != b.tray))        once
//
// Steps:
//
//  1. If the value of a chosen device occurs too often or can't occur often enough, the constraint fails. Propagate removes a
//     possible device if choosing the device would have this effect.
//  2. The values of chosen devices need further devices. If they need all devices that are left to choose, Propagate removes
//     the devices with other values.
//  3. Each value contributes 0 or some allowed number of further devices. The sums of these numbers are enumerated. If no sum
//     equals the number of devices left to choose, the constraint fails.
//
// Each call visits each value once.
type occurrences struct {
	leaf *propagate.Leaf
	// Limits bound, for each device of the set, the number of devices with the same value. The device itself counts.
	outcome.Limits
	// general is the condition as written. It replaces the constraint if values can't be compared.
	general propagate.Condition
}

// newOccurrences recognizes a condition that limits, for each device, the number of devices with the same value. It returns
// false for other conditions.
func newOccurrences(slot int, holds, general propagate.Condition) (propagate.Condition, bool) {
	c, ok := holds.(*cardinality)
	if !ok || !c.predicate.HasVariable(slot) || !c.predicate.HasVariable(c.slot) {
		return nil, false
	}
	leaf, others, ok := sameValueIn(c.predicate, false)
	if !ok {
		return nil, false
	}
	l := c.Limits
	if others {
		l = outcome.Limits{Least: outcome.Saturated(l.Least, 1), Most: outcome.Saturated(l.Most, 1)}
	}
	// A number of devices is never negative.
	return occurrences{leaf, outcome.Limits{Least: max(0, l.Least), Most: max(-1, l.Most)}, general}, true
}

// sameValueIn recognizes the condition that two devices have the same value. others is true if the condition also requires that
// the devices differ.
func sameValueIn(c propagate.Condition, negated bool) (l *propagate.Leaf, others, ok bool) {
	switch c := c.(type) {
	case *propagate.Predicate:
		return sameValueIn(c.Holds, negated != c.Negated)
	case not:
		return sameValueIn(c.operand, !negated)
	case and:
		if negated || !isIdentity(c.left, true) {
			return nil, false, false
		}
		l, others, ok = sameValueIn(c.right, false)
		return l, true, ok && !others
	case or:
		if !negated || !isIdentity(c.left, false) {
			return nil, false, false
		}
		l, others, ok = sameValueIn(c.right, true)
		return l, true, ok && !others
	case localComparison:
		left, ok := c.Left.(propagate.Value)
		right, too := c.Right.(propagate.Value)
		return left.Leaf, false, ok && too && c.Relation == outcome.Equal && !negated && left.Leaf == right.Leaf &&
			len(left.Slots) == 1 && len(right.Slots) == 1 && left.Slots[0] != right.Slots[0]
	default:
		return nil, false, false
	}
}

func (n occurrences) Negation() propagate.Condition { return NewNot(n.general) }

// groups returns the devices grouped by value, or nil if values can't be compared.
func (n occurrences) groups(s *propagate.State) []bitset.Set {
	c := s.Column(n.leaf)
	if c == nil || !s.AreWithin(c.Groups.Known) {
		return nil
	}
	return c.Groups.Members
}

func (n occurrences) Bound(s *propagate.State) outcome.Outcome {
	groups := n.groups(s)
	if groups == nil {
		return n.general.Bound(s)
	}
	for _, with := range groups {
		chosen, possible := s.CountsOf(with)
		if chosen > 0 && (int64(chosen) > n.Most || int64(chosen+min(possible, s.Left)) < n.Least) {
			return outcome.False
		}
	}
	if s.Left == 0 {
		return outcome.True
	}
	return outcome.True | outcome.False
}

func (n occurrences) Propagate(s *propagate.State) propagate.Status {
	groups := n.groups(s)
	switch {
	case groups == nil:
		return s.Propagate(n.general)
	case s.Left <= 0 || !s.Spend():
		return propagate.StatusOf(n.Bound(s))
	}
	needed, ok := n.need(s, groups)
	if !ok || needed > s.Left || !n.isReachable(s, groups) {
		return propagate.Failed
	}
	left := s.Left
	for _, with := range groups {
		chosen, possible := s.CountsOf(with)
		switch {
		case possible == 0:
		case chosen == 0 && int64(min(possible, left-needed)) < n.Least, int64(chosen) >= n.Most, needed == left && int64(chosen) >= n.Least:
			s.Drop(with)
		case chosen > 0 && int64(chosen+possible) == n.Least && !s.Hypothetical:
			s.Require(with)
		}
	}
	return propagate.NoFix
}

// need returns the number of further devices that are needed so that each value of a chosen device occurs often enough. It
// returns false if such a value occurs too often, or can't occur often enough.
func (n occurrences) need(s *propagate.State, groups []bitset.Set) (needed int, ok bool) {
	for _, with := range groups {
		chosen, possible := s.CountsOf(with)
		if chosen == 0 {
			continue
		}
		if int64(chosen) > n.Most || int64(chosen+possible) < n.Least {
			return 0, false
		}
		needed += max(0, int(min(n.Least, int64(s.Left+chosen+1)))-chosen)
	}
	return needed, true
}

// isReachable reports whether the values together can contribute exactly s.Left further devices. Bit i of a set means that i is
// a possible sum. For each value, the set is shifted by each number of devices that the value may contribute.
func (n occurrences) isReachable(s *propagate.State, groups []bitset.Set) bool {
	words := s.Left/64 + 1
	memory := s.Words(2 * words)
	reached, shifted := memory[:words], memory[words:]
	clear(reached)
	reached[0] = 1
	for _, with := range groups {
		chosen, possible := s.CountsOf(with)
		fewest, most := max(0, n.Least-int64(chosen)), min(int64(min(possible, s.Left)), n.Most-int64(chosen))
		if most < fewest || most <= 0 {
			continue
		}
		clear(shifted)
		joinShifted(shifted, reached, int(fewest))
		for covered, width := 0, int(most-fewest); covered < width; {
			step := min(covered+1, width-covered)
			joinShifted(shifted, shifted, step)
			covered += step
		}
		if chosen == 0 {
			joinShifted(reached, shifted, 0)
		} else {
			copy(reached, shifted)
		}
	}
	return bitset.Set(reached).Has(s.Left)
}

// joinShifted shifts the bits of from up by a number of positions and adds them to to. Both may be the same set. Bits beyond
// the end are lost.
func joinShifted(to, from []uint64, by int) {
	words, rest := by/64, uint(by%64)
	for w := len(to) - 1; w >= words; w-- {
		word := from[w-words] << rest
		if w > words && rest > 0 {
			word |= from[w-words-1] >> (64 - rest)
		}
		to[w] |= word
	}
}
