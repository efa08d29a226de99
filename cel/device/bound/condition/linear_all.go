// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"

	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// If a condition on all devices or all pairs limits the distance between the greatest and the smallest number, it becomes a
// [box]:
//
//	devices.all(a, devices.all(b, a.row - b.row < 4))
//	devices.all(d, d.row < devices.map(o, o.row).min() + 4)

// distance limits the greatest minus the smallest number of a column (a number for each device).
type distance struct {
	leaf *propagate.Leaf
	most int64
}

// DistancesOfAll converts devices.all(x, holds), for the slot of x, to a [box]. It returns false if holds does not limit
// distances.
func (b *Builder) DistancesOfAll(slot int, holds, general propagate.Condition) (propagate.Condition, bool) {
	slots, negated := []int{slot}, false
	if c, ok := holds.(*cardinality); ok && c.Limits == (outcome.Limits{Least: 0, Most: 0}) {
		slots, holds, negated = append(slots, c.slot), c.predicate, true
	}
	distances, ok := distancesIn(slots, holds, negated)
	if !ok || len(distances) == 0 || b.SetSize == 0 {
		return nil, false
	}
	var result propagate.Condition = verdict{outcome.True}
	var near Premise
	for _, d := range distances {
		of := Mapped{List: AllDevices{}, Slot: slot, Value: propagate.Value{Leaf: d.leaf, Slots: []int{slot}}}
		is := arithmetic{outcome.Subtraction, greatest{Mapped: of}, greatest{Mapped: of, Negated: true}}
		result = b.NewAnd(result, b.newSpan(d.leaf, outcome.Limits{Least: outcome.UnlimitedBelow, Most: d.most}, Comparison{outcome.LessOrEqual, is, Constant{d.most}}))
		near = together(near, behaves{d.leaf, propagate.Far})
	}
	return assuming{near, result, general}, true
}

// distancesIn returns the distances that a condition limits if it holds for all devices in the slots. If negated is set, the
// negation of the condition must hold.
func distancesIn(slots []int, holds propagate.Condition, negated bool) ([]distance, bool) {
	switch holds := holds.(type) {
	case *propagate.Predicate:
		return distancesIn(slots, holds.Holds, negated != holds.Negated)
	case not:
		return distancesIn(slots, holds.operand, !negated)
	case localComparison:
		return distancesIn(slots, holds.Comparison, negated)
	case Comparison:
		return distancesInComparison(slots, holds, negated)
	case and:
		return distancesInBoth(slots, holds.left, holds.right, negated, negated)
	case or:
		return distancesInBoth(slots, holds.left, holds.right, negated, !negated)
	default:
		return nil, false
	}
}

// distancesInBoth returns the distances that two conditions limit. If negated or either is set, only one of the two must hold.
func distancesInBoth(slots []int, left, right propagate.Condition, negated, either bool) ([]distance, bool) {
	if either && isIdentity(left, negated, slots...) {
		// left only excludes that both slots have the same device, and the distance of a device from itself is zero.
		distances, ok := distancesIn(slots, right, negated)
		return distances, ok && !slices.ContainsFunc(distances, func(d distance) bool { return d.most < 0 })
	}
	of, ok := distancesIn(slots, left, negated)
	and, too := distancesIn(slots, right, negated)
	return append(of, and...), ok && too && !either
}

// distancesInComparison returns the distances in one comparison. An upper limit for the greatest number limits all numbers.
func distancesInComparison(slots []int, c Comparison, negated bool) ([]distance, bool) {
	if negated {
		opposite, ok := c.Negation().(Comparison)
		if !ok {
			return nil, false
		}
		c = opposite
	}
	l, ok := linearOf(c.Left)
	r, too := linearOf(c.Right)
	if !ok || !too {
		return nil, false
	}
	sum, ok := l.plus(-1, r)
	if !ok {
		return nil, false
	}
	if c.Relation == outcome.Less {
		sum.constant++
	}
	distances, ok := distancesAtMost(slots, sum)
	if c.Relation == outcome.Equal && ok {
		opposite, _ := linear{}.plus(-1, sum)
		more, too := distancesAtMost(slots, opposite)
		return append(distances, more...), too
	}
	return distances, ok
}

// distancesAtMost returns the distances that a sum limits if the sum is at most zero for all devices in the slots.
func distancesAtMost(slots []int, sum linear) ([]distance, bool) {
	terms := linear{constant: sum.constant}
	for _, t := range sum.terms {
		if of, ok := t.of.(propagate.Value); ok && len(of.Slots) == 1 && slices.Contains(slots, of.Slots[0]) {
			t.of = greatest{Mapped: Mapped{List: AllDevices{}, Slot: of.Slots[0], Value: of}, Negated: t.factor < 0}
		} else if _, ok := t.of.(greatest); !ok {
			return nil, false
		}
		terms.add(t)
	}
	terms.terms = slices.DeleteFunc(terms.terms, func(t term) bool { return t.factor == 0 })
	if len(terms.terms) == 0 {
		return nil, terms.constant <= 0
	}
	leaf, factor, ok := distanceIn(terms.terms)
	if !ok || factor < 0 {
		return nil, false
	}
	return []distance{{leaf, outcome.FloorOf(-terms.constant, factor)}}, true
}
