// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"
	"time"

	"github.com/celset/celset/cel/device/bitset"
)

// This file has the exact search, a branch and bound over sets of victims:
//
//   1. The victims are decided one by one, the most important first. "Stays" is tried before "is removed".
//   2. A branch ends if its lower bound is not below the cost of the incumbent. The bound is the cost of the removed victims plus
//      the lowest cost of the further victims that must be removed.
//   3. If Fits returns false with all undecided victims removed, the last victim that stays must be removed.

// latest is later than the start of any pod.
var latest = time.Unix(1<<40, 0)

// branches is the state of one search.
type branches struct {
	*search
	// positions are the victims to decide on, in order.
	positions []int
	// removed is the current set of removed victims. Victims outside positions are in it from the beginning, or never.
	removed bitset.Set
	// endAt is the value of questions at which the search ends. A question is a call of Fits.
	endAt int
}

// from decides on the victims in b.positions[next:]. The caller must have checked that removing all of them is sufficient. all
// reports whether every branch was searched.
func (b *branches) from(next int) (all bool, err error) {
	if b.Over != nil {
		if err := b.Over(); err != nil {
			return false, err
		}
	}
	if b.bound(next).Compare(b.found.Cost) >= 0 {
		return true, nil
	}
	if next == len(b.positions) {
		b.keep(b.removed)
		return true, nil
	}
	if b.questions >= b.endAt {
		return false, nil
	}
	fits, err := b.fits(b.withRest(next + 1))
	if err != nil {
		return false, err
	}
	all = true
	if fits {
		if all, err = b.from(next + 1); err != nil {
			return false, err
		}
	}
	victim := b.positions[next]
	b.removed.Add(victim)
	defer b.removed.Remove(victim)
	rest, err := b.from(next + 1)
	return all && rest, err
}

// withRest returns the removed victims plus all undecided ones.
func (b *branches) withRest(next int) bitset.Set {
	removed := slices.Clone(b.removed)
	for _, i := range b.positions[next:] {
		removed.Add(i)
	}
	return removed
}

// bound returns a lower bound of the costs in this branch.
func (b *branches) bound(next int) Cost {
	cost := b.cost(b.removed)
	if !b.monotonic {
		cost.Violations = 0
	}
	more := b.stillMissing(next)
	if more == 0 {
		return cost
	}
	// Each component of the cost is bounded by the remaining victims that are cheapest in this component.
	rest := b.positions[next:]
	sums, highest, pods := make([]int64, len(rest)), make([]int32, len(rest)), make([]int, len(rest))
	for i, position := range rest {
		of := none.with(b.Victims[position])
		sums[i], highest[i], pods[i] = of.Sum, of.Highest, of.Pods
	}
	slices.Sort(sums)
	slices.Sort(highest)
	slices.Sort(pods)
	more = min(more, len(rest))
	for i := range more {
		cost.Sum += sums[i]
		cost.Pods += pods[i]
	}
	if top := highest[more-1]; top > cost.Highest || b.removed.IsEmpty() {
		// The start times of these victims are not considered.
		cost.Highest, cost.Earliest = top, latest
	}
	return cost
}

// stillMissing returns the least number of further victims, from next on, that must be removed.
func (b *branches) stillMissing(next int) int {
	most := 0
	for _, need := range b.Needs {
		missing := need.Missing
		for i := range b.Victims {
			if b.removed.Has(i) {
				missing -= need.Gives[i]
			}
		}
		gives := make([]int, 0, len(b.positions)-next)
		for _, i := range b.positions[next:] {
			gives = append(gives, need.Gives[i])
		}
		slices.Sort(gives)
		count := 0
		for i := len(gives) - 1; i >= 0 && missing > 0; i-- {
			missing -= gives[i]
			count++
		}
		most = max(most, count)
	}
	return most
}
