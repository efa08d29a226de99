// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"math/big"
	"slices"

	"github.com/celset/celset/allocator/internal/inventory"
)

// The search tries the sets of a constraint in lexicographic order: the devices of
// the first request change slowest, and within a request the first device does. So
// where it stands tells how many sets are behind it, although none of them was
// counted and most were left out without being looked at.
//
// For a request for k of n free devices, of which those with the indices c0 < c1 <
// ... are taken so far, the sets behind it are those that have a smaller device in
// one place and the same devices in the places before. For c0 these are the sets of
// k out of all n devices, without the sets of k out of the n - c0 devices from c0 on;
// for c1 those of k-1 out of the n - c0 - 1 devices after c0, without those of k-1
// out of the n - c1 from c1 on; and so forth.
//
// Example: 2 of 4, and the search stands at {1, 2}. Behind it are C(4,2) - C(3,2) = 3
// sets with 0 as the first device and C(2,1) - C(2,1) = 0 with 1 as the first, out
// of 6. {1, 2}, {1, 3} and {2, 3} are left.

// combination is what one request contributes to a set of a constraint.
type combination struct {
	// free is the number of devices that the request can choose from, count the number
	// it wants.
	free, count int
	// chosen are those that the search took so far: indices of free devices, ascending,
	// at most count.
	chosen []int
}

// sets is the number of ways to meet the request.
func (c combination) sets() *big.Int { return binomial(c.free, c.count) }

// behind is the number of those that come before all that begin with the chosen
// devices.
func (c combination) behind() *big.Int {
	sum, from := new(big.Int), 0
	for i, index := range c.chosen {
		sum.Add(sum, binomial(c.free-from, c.count-i))
		sum.Sub(sum, binomial(c.free-index, c.count-i))
		from = index + 1
	}
	return sum
}

func binomial(n, k int) *big.Int { return new(big.Int).Binomial(int64(n), int64(k)) }

// undecided is the number of sets from where the search stands on, the set that it
// stands at included, and the number of all sets.
func undecided(combinations []combination) (left, all *big.Int) {
	behind, all := new(big.Int), big.NewInt(1)
	for _, c := range slices.Backward(combinations) {
		behind.Add(behind, new(big.Int).Mul(c.behind(), all))
		all.Mul(all, c.sets())
	}
	return new(big.Int).Sub(all, behind), all
}

// combinations are those of the requests that the constraint covers, in order. Of a
// prioritized list it is the alternative being tried, or the first if the search did
// not get there.
func (c *celConstraint) combinations() []combination {
	var result []combination
	members := c.members
	for i, all := range c.search.requests[c.claimIndex] {
		r := c.search.solution.tried(c.search.requests, c.claimIndex, i)
		if r == nil {
			r = all[0]
		}
		if !c.isCovered(r) {
			continue
		}
		n := min(r.Count, len(members))
		result = append(result, c.search.combination(r, members[:n]))
		members = members[n:]
	}
	return result
}

func (c *celConstraint) isCovered(r *request) bool {
	return slices.ContainsFunc(c.covered, func(all alternatives) bool { return slices.Contains(all, r) })
}

// combination counts the devices for a request that has the members.
func (s *search) combination(r *request, members []*inventory.Candidate) combination {
	candidates := s.inventory.Candidates
	if r.WantsAll() {
		candidates = r.all
	}
	result := combination{count: r.Count}
	for _, c := range candidates {
		switch {
		case slices.Contains(members, c):
			result.chosen = append(result.chosen, result.free)
			result.free++
		case r.WantsAll() || s.isFree(r, c):
			result.free++
		}
	}
	return result
}

// isFree tells whether the request could have the device if it were alone. A device
// on which a selector fails it can't have.
func (s *search) isFree(r *request, c *inventory.Candidate) bool {
	if s.available.Allocated().Has(c.Position) && !r.AdminAccess() {
		return false
	}
	if isSelected, err := r.isSelected(c); err != nil || !isSelected || !s.available.IsUsable(&r.Request, c) {
		return false
	}
	enough, err := s.available.HasCapacity(&r.Request, c)
	return enough && err == nil
}
