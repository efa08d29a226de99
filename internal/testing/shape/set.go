// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"iter"
	"math/big"
	"math/bits"
	"math/rand/v2"
)

// Set is a set of devices of a scenario: bit i is the device of that index in
// Topology.Devices.
type Set uint64

// maxDevices is what fits into a Set.
const maxDevices = 64

// first is the set of the first n devices.
func first(n int) Set {
	if n >= maxDevices {
		return ^Set(0)
	}
	return 1<<n - 1
}

// bit is the set of one device.
func bit(i int) Set { return 1 << i }

// Len is the number of devices in the set.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }

// Has tells whether the device of index i is in the set.
func (s Set) Has(i int) bool { return s&bit(i) != 0 }

// All yields the indices of the devices in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(s.lowest()) {
				return
			}
		}
	}
}

// lowest is the index of the first device, of a set that is not empty.
func (s Set) lowest() int { return bits.TrailingZeros64(uint64(s)) }

// Sets is the number of sets that an exhaustive search looks at: those before the
// answer in the order of the allocator and the answer itself, or all if there is
// none.
func (s Scenario) Sets(free Set) *big.Int {
	answer, _ := s.HandWritten(free)
	all, before := big.NewInt(1), new(big.Int)
	for _, r := range s.Requests {
		ours := free & s.OfDriver(r.Driver)
		own := new(big.Int).Binomial(int64(ours.Len()), int64(r.Count))
		// For each set of the requests before, this one goes through all of its own.
		all.Mul(all, own)
		before.Mul(before, own)
		before.Add(before, rank(ours, answer&ours))
	}
	if answer == 0 {
		return all
	}
	return before.Add(before, big.NewInt(1))
}

// rank is the number of sets of the same size that come before a set.
func rank(free, set Set) *big.Int {
	before := new(big.Int)
	for set != 0 {
		lowest := free & -free
		free &^= lowest
		if set&lowest != 0 {
			set &^= lowest
			continue
		}
		// Those that have this device come before.
		before.Add(before, new(big.Int).Binomial(int64(free.Len()), int64(set.Len()-1)))
	}
	return before
}

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
