// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"

	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// sum is a linear constraint: each device has a weight. The sum over the set must be within limits or leave a remainder.
//
//	devices.map(d, memory(d)).sum() >= 640
//	devices.map(d, d.row).sum() == 4 * devices.map(d, d.col).sum()
//	devices.map(d, d.index).sum() % 2 == 0
//
// Steps:
//
//  1. The weights of all devices are computed once, and the devices are sorted by weight ([weights]).
//  2. The sum of the chosen devices is updated from the previous partial set ([running]).
//  3. The smallest and the greatest weights of the possible devices bound the sum.
//  4. All possible sums differ by multiples of one number: the greatest common divisor of the weights' differences
//     ([residues]). For example, a sum of even numbers is never odd.
//  5. If steps 3 and 4 don't decide, the sums of the devices left to choose are enumerated, unless there are too many
//     ([reachable]).
//  6. A possible device is removed if every sum with this device is too small or too large.
//
// Invariant: a removed device is in no completion that satisfies the constraint. If a weight is not exact, or so large that a sum
// might overflow, the condition as written is used.
type sum struct {
	terms []term
	outcome.Limits
	modulus
	// Derivation stores the weights, and the running sum of a search.
	propagate.Derivation
	// general is the condition as written. It replaces the constraint if weights are not exact or too large.
	general propagate.Condition
}

// newSum returns the condition on a sum of terms. It returns false unless each term is the sum of one number per device. b is
// nil for a condition that only one search uses.
func (b *Builder) newSum(terms []term, l outcome.Limits, m modulus, general propagate.Condition) (propagate.Condition, bool) {
	for i, t := range terms {
		of, ok := asTotal(t.of)
		if !ok || !of.isLocal() {
			return nil, false
		}
		terms[i].of = of
	}
	if len(terms) == 0 {
		return nil, false
	}
	return &sum{terms: terms, Limits: l, modulus: m, general: general, Derivation: b.NewDerivation()}, true
}

// asTotal converts the size of a list to a sum that adds 1 for each device of the list.
func asTotal(q propagate.Quantity) (total, bool) {
	switch q := q.(type) {
	case total:
		return q, true
	case size:
		return total{Mapped{List: q.list, Value: Constant{1}}}, true
	default:
		return total{}, false
	}
}

// joinSums returns one constraint for two constraints on the same sum. It returns false for other conditions.
func joinSums(left, right propagate.Condition) (propagate.Condition, bool) {
	l, ok := left.(*sum)
	r, too := right.(*sum)
	if !ok || !too || l.IsOwned() || r.IsOwned() || l.by > 0 && r.by > 0 ||
		!slices.EqualFunc(l.terms, r.terms, func(a, b term) bool { return a.factor == b.factor && isSame(a.of, b.of) }) {
		return nil, false
	}
	joined := *l
	joined.Limits = outcome.Limits{Least: max(l.Least, r.Least), Most: min(l.Most, r.Most)}
	joined.modulus = modulus{l.by + r.by, l.remainder + r.remainder}
	joined.general = and{l.general, r.general}
	return &joined, true
}

func (n *sum) Negation() propagate.Condition {
	opposite := *n
	opposite.general = NewNot(n.general)
	switch {
	case n.by > 0:
	case n.Least == outcome.UnlimitedBelow && n.Most < outcome.Unlimited:
		opposite.Limits = outcome.Limits{Least: n.Most + 1, Most: outcome.Unlimited}
		return &opposite
	case n.Most == outcome.Unlimited && n.Least > outcome.UnlimitedBelow:
		opposite.Limits = outcome.Limits{Least: outcome.UnlimitedBelow, Most: n.Least - 1}
		return &opposite
	}
	return not{n}
}

func (n *sum) Bound(s *propagate.State) outcome.Outcome {
	b, ok := n.bounds(s)
	if !ok {
		return n.general.Bound(s)
	}
	return n.outcome(s, b)
}

func (n *sum) Propagate(s *propagate.State) propagate.Status {
	b, ok := n.bounds(s)
	if !ok {
		return s.Propagate(n.general)
	}
	switch n.outcome(s, b) {
	case outcome.False:
		return propagate.Failed
	case outcome.True:
		return propagate.Subsumed
	}
	if s.Left > 0 {
		n.removeExtremes(s, b)
	}
	return propagate.NoFix
}

// bounds returns the bounds of the sum for the partial set. It returns false if a weight is not known.
func (n *sum) bounds(s *propagate.State) (b sumBounds, ok bool) {
	w, r := weightsOf(s, n.terms, n.Derivation)
	if w == nil || s.Left < 0 || s.Domain.Count() < s.Left || !s.AreWithin(w.known) || !s.Spend() {
		return b, false
	}
	b = sumBounds{weights: w, chosen: r.to(w, s.Chosen)}
	b.least, b.most = b.chosen, b.chosen
	left := s.Left
	for i := 0; left > 0; i++ {
		if device := int(w.order[i]); s.Domain.Has(device) {
			b.greatest = w.of[device]
			b.least += b.greatest
			left--
		}
	}
	left = s.Left
	for i := len(w.order) - 1; left > 0; i-- {
		if device := int(w.order[i]); s.Domain.Has(device) {
			b.smallest = w.of[device]
			b.most += b.smallest
			left--
		}
	}
	return b, true
}

// outcome returns the outcomes that the constraint can still have within the bounds.
func (n *sum) outcome(s *propagate.State, b sumBounds) outcome.Outcome {
	if s.Left == 0 {
		return outcome.Of(n.Verdict(b.chosen, b.chosen) == outcome.True && (n.by == 0 || b.chosen%n.by == n.remainder))
	}
	result := n.Verdict(b.least, b.most)
	if result == outcome.False || result == outcome.True && n.by == 0 {
		return result
	}
	least, most, r := max(b.least, n.Least), min(b.most, n.Most), b.residues(s)
	if !r.meet(least, most, n.modulus) || !n.isReachable(s, b, r.unit, least, most) {
		return outcome.False
	}
	return outcome.True | outcome.False
}

// removeExtremes removes the possible devices with a weight so small or large that every sum with them is outside of the
// limits.
func (n *sum) removeExtremes(s *propagate.State, b sumBounds) {
	if n.Least != outcome.UnlimitedBelow {
		lowest := outcome.Saturated(n.Least, b.smallest-b.most)
		for i := 0; i < len(b.order) && b.of[b.order[i]] < lowest; i++ {
			if s.Domain.Has(int(b.order[i])) {
				s.Remove(int(b.order[i]))
			}
		}
	}
	if n.Most != outcome.Unlimited {
		highest := outcome.Saturated(n.Most, b.greatest-b.least)
		for i := len(b.order) - 1; i >= 0 && b.of[b.order[i]] > highest; i-- {
			if s.Domain.Has(int(b.order[i])) {
				s.Remove(int(b.order[i]))
			}
		}
	}
}
