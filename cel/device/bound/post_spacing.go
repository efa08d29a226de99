// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/propagate"
)

import "github.com/celset/celset/cel/device/bound/outcome"

// sortedDistance reads a condition on two members of a sorted list that follow each other, or of which one is the first and
// one the last:
//
//	devices.map(d, d.index).sort()[1] == devices.map(d, d.index).sort()[0] + 1
//	devices.sortBy(d, d.index)[7].index - devices.sortBy(d, d.index)[0].index == 7
func (b *builder) sortedDistance(members []someMember, holds, general propagate.Condition) (propagate.Condition, bool) {
	if len(members) != 2 || members[0].order == nil || members[0].order != members[1].order || b.setSize > maxPlacesOfSet {
		return nil, false
	}
	first, last := members[0], members[1]
	if first.place > last.place {
		first, last = last, first
	}
	distance, ok := distanceBetween(first, last, holds)
	if !ok {
		return nil, false
	}
	near := behaves{first.order, propagate.Far}
	switch {
	case last.place == first.place+1:
		return assuming{near, b.newSpacing(first.order, first.place, distance, general), general}, true
	case first.place == 0 && last.place == int64(b.setSize)-1:
		return assuming{near, b.newSpan(first.order, distance, general), general}, true
	default:
		return nil, false
	}
}

// distanceBetween is that of the numbers by which two members are sorted.
func distanceBetween(first, last someMember, holds propagate.Condition) (outcome.Limits, bool) {
	p, ok := holds.(*propagate.Predicate)
	if !ok || p.Negated {
		return outcome.Limits{}, false
	}
	local, ok := p.Holds.(localComparison)
	if !ok {
		return outcome.Limits{}, false
	}
	sum, right, ok := linearLimits(local.comparison)
	if !ok || len(sum) != 2 || sum[0].factor != -sum[1].factor || sum[0].factor == 0 {
		return outcome.Limits{}, false
	}
	for i := range sum {
		from, ok := sum[1-i].of.(propagate.Value)
		to, too := sum[i].of.(propagate.Value)
		if ok && too && from.IsColumn(first.slot) && to.IsColumn(last.slot) && from.Leaf == first.order && to.Leaf == first.order {
			return right.Divide(sum[i].factor), true
		}
	}
	return outcome.Limits{}, false
}
