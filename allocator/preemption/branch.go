// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"
	"time"

	"github.com/celset/celset/cel/device/bitset"
)

// Branch and bound over sets of victims. For one after the other, the most important first, it is
// decided whether it stays or goes, staying tried first. A branch is left when what is removed
// already costs as much as what was found, with what has to be removed besides counted as if it were
// the cheapest. If it does not fit with all removed that are not to stay, the last that stays must go.

// latest is after whatever started.
var latest = time.Unix(1<<40, 0)

// branches are those of one search.
type branches struct {
	*search
	// positions are the victims that are decided on, in order.
	positions []int
	// removed goes on with the decisions. Victims that are not decided on are in it or not from the
	// beginning.
	removed bitset.Set
	// left is after how many questions the search ends.
	left int
}

// from decides on the positions from the given one on. It fits if all of them are removed. all tells
// that every branch was looked at.
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
	if b.questions >= b.left {
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

// withRest has what is removed if everybody goes who has not been decided on.
func (b *branches) withRest(next int) bitset.Set {
	removed := slices.Clone(b.removed)
	for _, i := range b.positions[next:] {
		removed.Add(i)
	}
	return removed
}

// bound is not above the cost of anything in this branch.
func (b *branches) bound(next int) Cost {
	cost := b.cost(b.removed)
	if !b.monotonic {
		cost.Violations = 0
	}
	more := b.stillMissing(next)
	if more == 0 {
		return cost
	}
	// Of each property the cheapest that the rest has.
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
		// Nothing is known of when those started.
		cost.Highest, cost.Earliest = top, latest
	}
	return cost
}

// stillMissing is how many of the victims from next on have to go at least.
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
