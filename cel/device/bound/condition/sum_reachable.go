// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"iter"
	"math/bits"

	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// residues describes the possible sums of a partial set: first plus multiples of unit. If unit is 0, first is the only sum.
type residues struct{ unit, first int64 }

// residues returns the possible sums of the partial set. unit is the greatest common divisor of the differences between the
// weights of the possible devices.
func (b sumBounds) residues(s *propagate.State) residues {
	r := residues{first: b.chosen + int64(s.Left)*b.smallest}
	for i := range s.Domain.All() {
		if r.unit = gcd(r.unit, b.of[i]-b.smallest); r.unit == 1 {
			break
		}
	}
	return r
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// meet reports whether some sum from least to most leaves the remainder that m requires.
func (r residues) meet(least, most int64, m modulus) bool {
	if m.by > 0 && (r.first-m.remainder)%gcd(r.unit, m.by) != 0 {
		return false
	}
	if r.unit == 0 {
		return least <= r.first && r.first <= most
	}
	return outcome.FloorOf(most-r.first, r.unit)*r.unit >= least-r.first
}

// maxReached limits the work of one enumeration, in 64-bit words. This many words take some ten microseconds.
const maxReached = 1 << 16

// reachable holds, for each number of devices, the sums that this number of devices can have, as a set of bits. Bit i means the
// sum base + i*step.
type reachable struct {
	words      int
	sums       []uint64
	base, step int64
}

// isReachable reports whether s.Left possible devices can have a sum from least to most that leaves the required remainder. It
// returns true if there are too many sums to enumerate.
func (m modulus) isReachable(s *propagate.State, b sumBounds, unit, least, most int64) bool {
	if m.by == 0 && (least == b.least || most == b.most) {
		// The limit least or most is itself the sum of the lightest or the heaviest devices, so it is reachable.
		return true
	}
	unlimited := least == b.least && most == b.most
	smallest, greatest := b.extremes(s)
	r := reachable{base: b.chosen + int64(s.Left)*smallest, step: max(1, unit)}
	width := (most - r.base) / r.step
	var shift func(weight int64) int64
	switch down := (b.chosen + int64(s.Left)*greatest - least) / r.step; {
	case unlimited:
		// Only the remainder is limited, so it is enough to enumerate the sums of the weights' remainders.
		r.base, r.step, width = b.chosen, 1, int64(s.Left)*(m.by-1)
		shift = func(weight int64) int64 { return ((weight % m.by) + m.by) % m.by }
	case down < width:
		r.base, r.step, width = b.chosen+int64(s.Left)*greatest, -r.step, down
		shift = func(weight int64) int64 { return (weight - greatest) / r.step }
	default:
		shift = func(weight int64) int64 { return (weight - smallest) / r.step }
	}
	if words := width/64 + 1; width < 0 || width > maxReached || words*int64(s.Left)*int64(s.Domain.Count()) > maxReached {
		return true
	}
	if r.begin(s, int(width)); !s.Spend() {
		return true
	}
	added := 0
	for i := range s.Domain.All() {
		added++
		r.add(shift(b.of[i]), min(added, s.Left))
	}
	for sum := range r.of(s.Left) {
		if (unlimited || least <= sum && sum <= most) && (m.by == 0 || (sum-m.remainder)%m.by == 0) {
			return true
		}
	}
	return false
}

// extremes returns the smallest and the greatest weight of the possible devices. The domain must not be empty.
func (b sumBounds) extremes(s *propagate.State) (smallest, greatest int64) {
	for i := 0; ; i++ {
		if s.Domain.Has(int(b.order[i])) {
			smallest = b.of[b.order[i]]
			break
		}
	}
	for i := len(b.order) - 1; ; i-- {
		if s.Domain.Has(int(b.order[i])) {
			return smallest, b.of[b.order[i]]
		}
	}
}

// begin creates an empty set of sums for each number of devices from 0 to s.Left. A set has bits for the sums from base to
// base + width*step. Then begin adds base as the sum of no devices.
func (r *reachable) begin(s *propagate.State, width int) {
	r.words = width/64 + 1
	count := (s.Left + 1) * r.words
	r.sums = s.Words(count)
	clear(r.sums)
	r.sums[0] = 1
	s.AddWork(count)
}

// add adds a device with the given weight, in steps. Each sum of j-1 devices, shifted by the weight, becomes a sum of j
// devices, for j from 1 to devices.
func (r *reachable) add(shift int64, devices int) {
	for j := devices; j > 0; j-- {
		joinShifted(r.sums[j*r.words:(j+1)*r.words], r.sums[(j-1)*r.words:j*r.words], int(shift))
	}
}

// of yields the sums that exactly this number of devices can have.
func (r *reachable) of(devices int) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for w, word := range r.sums[devices*r.words : (devices+1)*r.words] {
			for ; word != 0; word &= word - 1 {
				if !yield(r.base + r.step*int64(w*64+bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// modulus requires a remainder of the sum's division by a positive number. If by is zero, any remainder is allowed.
type modulus struct{ by, remainder int64 }

// sumBounds are bounds of the sum over all completions of a partial set.
type sumBounds struct {
	*weights
	// chosen is the sum of the chosen devices.
	chosen int64
	// least is the sum with the s.Left lightest possible devices, and greatest is the largest weight among these devices. most
	// is the sum with the s.Left heaviest possible devices, and smallest is the least weight among these devices.
	least, most        int64
	smallest, greatest int64
}
