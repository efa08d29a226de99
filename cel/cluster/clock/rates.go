// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import "slices"

// rates are how fast a value may move, in seconds each second: now() at 1, what does not
// depend on the time at 0, and timestamp("…") - now() at -1. Which of several it is depends
// on the way that an evaluation takes: condition ? now() : timestamp("…"). Those of a list,
// a map or an optional value are the rates of what is in it. They are sorted, and never
// none.
type rates []int64

var (
	fixed  = rates{0}
	timely = rates{1}
)

// Limits of what is followed: nobody needs more, and each is looked at in each evaluation.
const (
	mostRates   = 8
	fastestRate = 16
)

func ratesOf(all []int64) rates {
	slices.Sort(all)
	return slices.Compact(all)
}

// or are the rates of either of two values.
func (r rates) or(other rates) rates { return ratesOf(slices.Concat(r, other)) }

// plus are the rates of a sum.
func (r rates) plus(other rates) rates {
	var sums []int64
	for _, a := range r {
		for _, b := range other {
			sums = append(sums, a+b)
		}
	}
	return ratesOf(sums)
}

// negated are the rates of a value with the other sign.
func (r rates) negated() rates {
	result := make(rates, len(r))
	for i, rate := range r {
		result[len(r)-1-i] = -rate
	}
	return result
}

// moves tells whether a value may depend on the time.
func (r rates) moves() bool { return !slices.Equal(r, fixed) }

// excessive tells that there are too many, or one is too large.
func (r rates) excessive() bool {
	return len(r) > mostRates || r[0] < -fastestRate || r[len(r)-1] > fastestRate
}
