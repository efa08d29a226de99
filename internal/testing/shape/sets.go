// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import "math/big"

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
