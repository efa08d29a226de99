// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// SortedDistance converts a condition on two members of a sorted list. The members must be neighbours, or the first and the
// last:
//
//	devices.map(d, d.index).sort()[1] == devices.map(d, d.index).sort()[0] + 1
//	devices.sortBy(d, d.index)[7].index - devices.sortBy(d, d.index)[0].index == 7
func (b *Builder) SortedDistance(members []SomeMember, holds, general propagate.Condition) (propagate.Condition, bool) {
	if len(members) != 2 || members[0].Order == nil || members[0].Order != members[1].Order || b.SetSize > maxPositionsOfSet {
		return nil, false
	}
	first, last := members[0], members[1]
	if first.Place > last.Place {
		first, last = last, first
	}
	distance, ok := distanceBetween(first, last, holds)
	if !ok {
		return nil, false
	}
	near := behaves{first.Order, propagate.Far}
	switch {
	case last.Place == first.Place+1:
		return assuming{near, b.newSpacing(first.Order, first.Place, distance, general), general}, true
	case first.Place == 0 && last.Place == int64(b.SetSize)-1:
		return assuming{near, b.newSpan(first.Order, distance, general), general}, true
	default:
		return nil, false
	}
}

// distanceBetween returns the limits that holds sets for the distance between the numbers of the two members.
func distanceBetween(first, last SomeMember, holds propagate.Condition) (outcome.Limits, bool) {
	p, ok := holds.(*propagate.Predicate)
	if !ok || p.Negated {
		return outcome.Limits{}, false
	}
	local, ok := p.Holds.(localComparison)
	if !ok {
		return outcome.Limits{}, false
	}
	sum, right, ok := linearLimits(local.Comparison)
	if !ok || len(sum) != 2 || sum[0].factor != -sum[1].factor || sum[0].factor == 0 {
		return outcome.Limits{}, false
	}
	for i := range sum {
		from, ok := sum[1-i].of.(propagate.Value)
		to, too := sum[i].of.(propagate.Value)
		if ok && too && from.IsColumn(first.Slot) && to.IsColumn(last.Slot) && from.Leaf == first.Order && to.Leaf == first.Order {
			return right.Divide(sum[i].factor), true
		}
	}
	return outcome.Limits{}, false
}
