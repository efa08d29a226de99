// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"math/big"
	"math/rand/v2"
)

// Variants are sets of devices in use for n nodes, in the manner of an occupancy and
// no two alike; fewer if there aren't so many. They are the same in every run, and
// the first is the occupancy itself.
//
// In the manner of an occupancy means: for [Free70] and [HalfFree], as many devices in
// use, others. For the other ones, a few more in use besides those of the occupancy,
// as few as make n different ones; an adversarial occupancy keeps its first answer,
// and in all of them enough devices stay free for the claim.
func (s Scenario) Variants(o Occupancy, n int) []Set {
	r := random(o.InUse.Len())
	result := []Set{o.InUse}
	seen := map[Set]bool{o.InUse: true}
	if o.Name == Free70 || o.Name == HalfFree {
		return draw(r, result, seen, n, 0, s.All(), o.InUse.Len(), func(Set) bool { return true })
	}
	free := s.All() &^ o.InUse
	kept := Set(0)
	if o.Name == Adversarial {
		kept, _ = s.HandWritten(free)
	}
	enough := func(inUse Set) bool { return s.Enough(s.All() &^ inUse) }
	for more := 1; more <= (free&^kept).Len() && len(result) < n; more++ {
		before := len(result)
		result = draw(r, result, seen, n, o.InUse, free&^kept, more, enough)
		if len(result) == before {
			// With still more in use it does not get better.
			break
		}
	}
	return result
}

// draw appends up to n occupancies that have size devices of from in use besides
// those of base. It goes through all there are only if it has to.
func draw(r *rand.Rand, to []Set, seen map[Set]bool, n int, base, from Set, size int, accepted func(Set) bool) []Set {
	for undrawn := subsets(from.Len(), size) - drawnBefore(seen, base, from, size); undrawn > 0 && len(to) < n; {
		occupancy := base | pick(r, from, size)
		if seen[occupancy] {
			continue
		}
		seen[occupancy] = true
		undrawn--
		if accepted(occupancy) {
			to = append(to, occupancy)
		}
	}
	return to
}

// drawnBefore counts what draw would find a second time.
func drawnBefore(seen map[Set]bool, base, from Set, size int) int64 {
	var count int64
	for occupancy := range seen {
		if more := occupancy &^ base; occupancy&base == base && more&^from == 0 && more.Len() == size {
			count++
		}
	}
	return count
}

// subsets is the number of sets of k of n devices. For 64 devices it stays below
// 2^61.
func subsets(n, k int) int64 {
	return new(big.Int).Binomial(int64(n), int64(k)).Int64()
}
