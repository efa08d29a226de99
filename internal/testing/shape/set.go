// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"iter"
	"math/big"
	"math/bits"
	"math/rand/v2"
)

// Set is a set of devices of a scenario. Bit i is the device with index i in Topology.Devices.
type Set uint64

// maxDevices is the maximum number of devices in a Set.
const maxDevices = 64

// first returns the set of the first n devices.
func first(n int) Set {
	if n >= maxDevices {
		return ^Set(0)
	}
	return 1<<n - 1
}

// bit returns the set of device i.
func bit(i int) Set { return 1 << i }

// Len returns the number of devices in the set.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }

// Has reports whether device i is in the set.
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

// lowest returns the index of the first device. The set must not be empty.
func (s Set) lowest() int { return bits.TrailingZeros64(uint64(s)) }

// Sets returns the number of sets that an exhaustive search visits in the allocator's order: the sets up to the first one with
// the shape, or all sets if none has the shape.
func (s Scenario) Sets(free Set) *big.Int {
	answer, _ := s.HandWritten(free)
	all, before := big.NewInt(1), new(big.Int)
	for _, r := range s.Requests {
		ours := free & s.OfDriver(r.Driver)
		own := new(big.Int).Binomial(int64(ours.Len()), int64(r.Count))
		// Every set of the devices for the previous requests is combined with every set for this request.
		all.Mul(all, own)
		before.Mul(before, own)
		before.Add(before, rank(ours, answer&ours))
	}
	if answer == 0 {
		return all
	}
	return before.Add(before, big.NewInt(1))
}

// rank returns the number of sets of free devices, of the same size as set, that come before set in the allocator's order.
func rank(free, set Set) *big.Int {
	before := new(big.Int)
	for set != 0 {
		lowest := free & -free
		free &^= lowest
		if set&lowest != 0 {
			set &^= lowest
			continue
		}
		// All sets that contain this device come before set, which does not contain it.
		before.Add(before, new(big.Int).Binomial(int64(free.Len()), int64(set.Len()-1)))
	}
	return before
}

// Variants returns up to n different occupancies that resemble a given one, as sets of devices in use. The first result is the
// given occupancy itself. The results are the same in every run.
//
// Variants of [Free70] and [HalfFree] have equally many devices in use, but other ones. Variants of other occupancies have
// additional devices in use, only as many as are needed to get n variants. In variants of [Adversarial] the first set with the
// shape stays free, and enough devices for the claim stay free.
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
			// With more devices in use, there would not be enough free devices either.
			break
		}
	}
	return result
}

// draw appends accepted occupancies to a list until the list has n. An occupancy is base and size random devices of from. draw
// ends early if it has tried all such occupancies.
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

// drawnBefore counts the occupancies in seen that draw could draw again.
func drawnBefore(seen map[Set]bool, base, from Set, size int) int64 {
	var count int64
	for occupancy := range seen {
		if more := occupancy &^ base; occupancy&base == base && more&^from == 0 && more.Len() == size {
			count++
		}
	}
	return count
}

// subsets returns the number of sets of k out of n devices. For 64 devices it is below 2^61.
func subsets(n, k int) int64 {
	return new(big.Int).Binomial(int64(n), int64(k)).Int64()
}
