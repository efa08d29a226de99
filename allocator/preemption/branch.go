// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"
	"time"

	"github.com/celset/celset/cel/device/bitset"
)

// This file implements the exact search, a branch and bound over sets of victims:
//
//  1. The search decides on one victim after the other, the most important first. It first tries to keep the victim, then to
//     remove it.
//  2. A branch ends if its lower bound is not below the cost of the incumbent. The bound is the cost of the removed victims
//     plus the lowest possible cost of the further victims that must be removed.
//  3. If Fits returns false even with all undecided victims removed, the last victim that was kept must be removed.

// latest is later than the start of any pod.
var latest = time.Unix(1<<40, 0)

// branches is the state of one exact search.
type branches struct {
	*search
	// positions lists the victims to decide on, in order.
	positions []int
	// removed holds the victims that are currently removed. The search does not change it for victims that are not in positions.
	removed bitset.Set
	// endAt is the number of calls of Fits (questions) at which the search ends.
	endAt int
}

// from decides on the victims in b.positions[next:]. The caller must have checked that removing all of them is sufficient. all
// is true if every branch was searched.
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

// withRest returns the removed victims plus all undecided victims.
func (b *branches) withRest(next int) bitset.Set {
	removed := slices.Clone(b.removed)
	for _, i := range b.positions[next:] {
		removed.Add(i)
	}
	return removed
}

// bound returns a lower bound of the cost of all sets in this branch.
func (b *branches) bound(next int) Cost {
	cost := b.cost(b.removed)
	if !b.monotonic {
		cost.Violations = 0
	}
	more := b.stillMissing(next)
	if more == 0 {
		return cost
	}
	// For each component of the cost, add the smallest values among the remaining victims.
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
		// The bound ignores the start times of these victims, and latest is the best possible start.
		cost.Highest, cost.Earliest = top, latest
	}
	return cost
}

// stillMissing returns a lower bound of the number of victims in positions[next:] that must be removed.
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
